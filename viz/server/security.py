"""Which requests are refused before any other code of the app runs, and what a browser is told to forbid.

In order, from the outside: every answer gets the browser's rules, and no error shows its details. Then
come checks of what a request wants, its size, its origin, and the host name that it used. Streamlit's own
checks of hosts and origins follow.
"""

import base64
import hashlib
import logging
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import streamlit
import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.system.settings import settings, settings_of
from viz.notation.words import sentences_of
from viz.server.connections import no_room
from viz.server.uploads import Uploads, largest_body
from viz.server.websocket_messages import UsedMessages
from viz.state.locality import is_local

say = sentences_of("server.security")

_INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_FORBIDDEN_DEVICES = say("accelerometer_camera_display")


def inline_script_hashes(page: str) -> list[str]:
    """The sources for a policy that allows exactly this page's own inline scripts."""
    digests = (hashlib.sha256(script.encode()).digest() for script in _INLINE_SCRIPT.findall(page))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


@cache
def _own_rules() -> str:
    """Nothing from elsewhere; beyond our own files only what Streamlit and Plotly cannot do without.

    `blob:` carries the scripts of the components and the pictures that Plotly saves; Streamlit's
    KaTeX has a font as `data:`. Streamlit's and Plotly's style rules are written into the page
    while it runs, so they cannot be hashed.
    """
    own_scripts = " ".join(inline_script_hashes(_INDEX.read_text(encoding="utf-8")))
    return "; ".join(
        (
            "default-src 'none'",
            say("script_src_self", own_scripts=own_scripts),
            say("style_src_self_unsafe"),
            say("img_src_self_data"),
            say("font_src_self_data"),
            "connect-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def framing(ancestors: Sequence[str]) -> dict[str, str]:
    """The rules on who may show the app in a frame.

    ancestors: origins, as a policy writes them. The older header knows no list of origins, so it is left out
    where the policy has one: browsers that know both follow the policy.
    """
    policy = f"{_own_rules()}; frame-ancestors " + (" ".join(ancestors) or "'none'")
    older = {(): "DENY", ("'self'",): "SAMEORIGIN"}.get(tuple(ancestors))
    return {"content-security-policy": policy} | ({"x-frame-options": older} if older else {})


def browser_rules(*, encrypted: bool) -> dict[str, str]:
    """The headers of every answer, names in lower case.

    encrypted: whether the visitor came by https; only then is the browser told to come back that way.
    """
    rules = framing(settings().frame_ancestors) | {
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": ", ".join(f"{device}=()" for device in _FORBIDDEN_DEVICES.split()),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    if encrypted:
        rules["strict-transport-security"] = "max-age=31536000"
    return rules


HEADER_BYTES = 48 * 1024  # of the address, or the headers; a link with two long texts has 30 KB
READING = {"GET", "HEAD"}
# An orchestrator asks by the machine's number, and learns one word; so does Prometheus, and whether it may
# read the metrics is asked before (`closed_numbers`).
OPEN_TO_ANY_HOST = {"/readyz", "/metrics"}
UPLOAD = "/_stcore/upload_file"  # of trace files, where the owner lets visitors open their own
UPLOADING = {"PUT", "DELETE"}
SERVER_ERROR = say("server_made_error")  # all that a visitor is told of one
# Addresses of Streamlit's that this app does not use: metrics, its interface for agents, log-in.
CLOSED = (
    "/_stcore/agent",
    "/_stcore/metrics",
    "/_stcore/script-health-check",
    "/auth",
    "/component",
    "/oauth2callback",
)
NUMBERS = ("/metrics", "/owner")
ROOT_QUESTIONS = ("/_stcore/health", "/_stcore/host-config")  # how Streamlit's script finds the app
_NOTHING = 404, say("nothing_address")
_FOREIGN = 403, say("pages_other_sites")
_logger = logging.getLogger(__name__)


class Rule(Protocol):
    """A reason to refuse: status and sentence, or None where the request may pass."""

    def __call__(self, scope: Scope) -> tuple[int, str] | None: ...


def web_security() -> list[Middleware]:
    """What stands before Streamlit, outermost first."""
    return [
        Middleware(BrowserRules),
        Middleware(
            Refusals,
            rules=(
                no_room,
                changes_something,
                too_large,
                closed_door,
                not_the_root,
                foreign_origin,
                closed_numbers,
            ),
        ),
        Middleware(AllowedHosts),
        Middleware(Uploads),
        Middleware(UsedMessages),
    ]


class BrowserRules:
    """Adds the browser's rules to every answer. The details of an error stay on the server."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = "waiting"

        async def send_with_rules(message: Message) -> None:
            nonlocal state
            state = _NEXT.get(message["type"], state)
            if message["type"] in _ANSWERS:
                _put_rules(MutableHeaders(scope=message), scope)
            await send(message)

        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send_with_rules)
        except Exception:  # the border: the log gets the cause, the visitor a sentence
            _logger.exception("A request failed: %s", scope["type"])
            if state == "open":
                await send({"type": "websocket.close", "code": 1011})
            elif state == "waiting" and scope["type"] == "http":
                answer = PlainTextResponse(SERVER_ERROR, status_code=500)
                await answer(scope, receive, send_with_rules)


_ANSWERS = {"http.response.start", "websocket.http.response.start"}
_NEXT = {name: "answered" for name in (*_ANSWERS, "websocket.close")} | {"websocket.accept": "open"}


def _put_rules(headers: MutableHeaders, scope: Scope) -> None:
    """No answer may be read by pages of other sites, so permissions for them are removed."""
    for name in [name for name in headers if name.startswith("access-control-")]:
        del headers[name]
    headers.update(browser_rules(encrypted=scope["scheme"] in {"https", "wss"}))


class Refusals:
    """Answers by the first rule that refuses a request, before the app sees it."""

    def __init__(self, app: ASGIApp, rules: Sequence[Rule]) -> None:
        self.app = app
        self.rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rules = self.rules if scope["type"] in {"http", "websocket"} else ()
        refusal = next(filter(None, (rule(scope) for rule in rules)), None)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        status, sentence = refusal
        headers = {"retry-after": "60"} if status == 503 else {}
        if status == 503 or _carries_body(scope):  # where its rest ends is not known
            headers["connection"] = "close"
        await PlainTextResponse(sentence, status, headers)(scope, receive, send)


def _carries_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def too_large(scope: Scope) -> tuple[int, str] | None:
    """A long address, many headers, or a body where no file is sent, or of too many bytes."""
    address = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if address > HEADER_BYTES:
        return 414, say("address_longer_kb", header_bytes=HEADER_BYTES // 1024)
    if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
        return 431, say("headers_longer_kb", header_bytes=HEADER_BYTES // 1024)
    headers = Headers(scope=scope)
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or (length != "0" and not is_upload(scope)):
        return 413, say("requests_app_may")
    is_number = length.isascii() and length.isdigit() and len(length) < 20
    if not (is_number and int(length) <= largest_body()):
        return 413, say("file_larger_files")
    return None


def changes_something(scope: Scope) -> tuple[int, str] | None:
    """All changes go through the websocket; every other request only reads, or sends a file."""
    if scope["type"] == "http" and scope["method"] not in READING and not is_upload(scope):
        return 405, say("app_answers_only")
    return None


def closed_door(scope: Scope) -> tuple[int, str] | None:
    """An address of Streamlit's that this app does not use, also under a folder."""
    if any(f"{door}/" in f"{scope['path']}/" for door in CLOSED):
        return _NOTHING
    if f"{UPLOAD}/" in f"{scope['path']}/" and not is_upload(scope):
        return _NOTHING
    return None


def is_upload(scope: Scope) -> bool:
    """Whether a request sends a file, or takes it back, and may do so. Streamlit then asks for the session's
    own cookie."""
    if scope["type"] != "http" or scope["method"] not in UPLOADING:
        return False
    folder = st.get_option("server.baseUrlPath").strip("/")
    if not scope["path"].startswith(f"{f'/{folder}' if folder else ''}{UPLOAD}/"):
        return False
    client = scope.get("client")
    here = is_local(None if client is None else client[0], Headers(scope=scope).items())
    return settings_of(asked_here=here).trace_files


def not_the_root(scope: Scope) -> tuple[int, str] | None:
    """Opened at /page, Streamlit's own script first asks whether the app lives there, then at the root.

    It goes on after any answer that is not a success. 300 is used because the browser logs 400 and above.
    """
    folders = {scope["path"].removesuffix(question) for question in ROOT_QUESTIONS}
    folders -= {scope["path"], ""}
    if any(
        folder.strip("/") != st.get_option("server.baseUrlPath").strip("/") for folder in folders
    ):
        return 300, say("app_lives_root_address")
    return None


def foreign_origin(scope: Scope) -> tuple[int, str] | None:
    """A request from a page of another site, or of another port of this machine.

    Browsers send a page's origin with every websocket, and a page cannot change it. Other programs send none,
    and they have no visitor's cookies.
    """
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin is None:
        return None
    try:
        named = urlsplit(origin)
    except ValueError:  # no origin is written so
        return _FOREIGN
    encrypted = scope["scheme"] in {"https", "wss"}
    if named.netloc != headers.get("host") or (encrypted and named.scheme != "https"):
        return _FOREIGN
    return None


def closed_numbers(scope: Scope) -> tuple[int, str] | None:
    """`/metrics` and `/owner`, for those who may not read them."""
    allowed = settings().metrics
    if scope["path"] not in NUMBERS or allowed == "on":
        return None
    client = scope.get("client")
    peer = None if client is None else client[0]
    if allowed == "local" and is_local(peer, Headers(scope=scope).items()):
        return None
    return _NOTHING


class AllowedHosts:
    """Starlette's check of the Host header, with Streamlit's list of names.

    Another site can let its name resolve to this machine (DNS rebinding). The Host header then still
    holds that name.
    """

    def __init__(self, app: ASGIApp) -> None:
        names: list[str] = st.get_option("server.allowedHosts")
        self.app = app
        self.checked = TrustedHostMiddleware(app, allowed_hosts=names, www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        anyone = scope["type"] == "http" and scope["path"] in OPEN_TO_ANY_HOST
        await (self.app if anyone else self.checked)(scope, receive, send)
