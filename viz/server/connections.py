"""Bounds on connections: how many are open, how long a request may take to arrive, and how long a reader may
take nothing of its answer. Who is refused reads a sentence, as long as a descriptor is left to send it.

uvicorn has none of these bounds. Streamlit starts it, so Streamlit is given these classes for it.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.web.server.starlette import starlette_server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from model.system.addresses import is_loopback
from viz.notation.words import sentences_of

say = sentences_of("server.connections")

if sys.platform != "win32":  # which has no such limit
    import resource

MOST_DESCRIPTORS = 65_536  # the limit is raised no further
MOST_CONNECTIONS = 2_000
SHARE = 4  # of what there is, the last part is for addresses that have no more than such a part
RESERVE = 64  # descriptors for files, models and answers, beyond those of the sessions
# New connections in one turn of the loop. Those of the turns until one is checked fit into RESERVE.
ACCEPTED_AT_ONCE = 4
HEAD_SECONDS = 20.0  # for a whole request to arrive
STILL_SECONDS = 30.0  # for which a reader may take nothing of its answer
SECONDS_TO_ANSWER = 3  # for answers and websockets after the server is told to end
ALWAYS_ANSWERED = {"/readyz", "/_stcore/health"}
SENTENCE = say("app_many_visitors")
_IN_USE = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"


def raise_limit() -> None:
    """Lets this process open as many files and connections as the system allows, up to a bound."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def descriptors() -> int:
    """How many files and connections this process may open."""
    if sys.platform == "win32":
        return MOST_DESCRIPTORS
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def reserve() -> int:
    """Descriptors that visitors do not get."""
    return min(RESERVE, descriptors() // 4)


def free_descriptors() -> int:
    """How many descriptors are free now. To list those in use takes one."""
    if sys.platform == "win32":
        return MOST_DESCRIPTORS
    try:
        return descriptors() - len(os.listdir(_IN_USE))
    except OSError:
        return 0


def no_room(scope: Scope) -> tuple[int, str] | None:
    """A request for which there is no room. New pages are refused first, so that open ones stay connected."""
    if scope["path"] in ALWAYS_ANSWERED:
        return None
    kept = reserve() if scope["type"] == "websocket" or _is_part(scope["path"]) else 2 * reserve()
    free, open_now = free_descriptors(), len(_server.connections)
    if free < kept or open_now > MOST_CONNECTIONS:
        return 503, SENTENCE
    is_short = free < descriptors() // SHARE or open_now > MOST_CONNECTIONS * (1 - 1 / SHARE)
    return (503, SENTENCE) if is_short and _has_its_share(scope.get("client")) else None


def _has_its_share(client: tuple[str, int] | None) -> bool:
    """Whether an address has as many connections as one may when they run short. All visitors of a proxy on
    this computer have one address, that of this computer."""
    if client is None or is_loopback(client[0]):
        return False
    own = sum(one.client is not None and one.client[0] == client[0] for one in _server.connections)
    return own > min(MOST_CONNECTIONS, descriptors()) // SHARE


def _is_part(path: str) -> bool:
    """Whether an open page asks for this path; other paths are pages."""
    return "." in path.rpartition("/")[2] or path.startswith(("/_stcore/", "/app/"))


class _Watched(asyncio.Protocol):
    """A connection whose reader is watched."""

    transport: asyncio.Transport
    client: tuple[str, int] | None
    _unread, _taken_at, _drained = 0, 0.0, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._taken_at = time.monotonic()
        _server.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        _server.connections.discard(self)
        super().connection_lost(error)

    def resume_writing(self) -> None:
        self._drained = True
        super().resume_writing()

    def close_if_stalled(self, now: float) -> None:
        """Closes the connection where its reader has taken nothing for too long. The reader took
        something if the waiting bytes are none or fewer than before, or if the transport asked for
        more."""
        unread = self.transport.get_write_buffer_size()
        if unread == 0 or unread < self._unread or self._drained:
            self._taken_at = now
        self._unread, self._drained = unread, False
        if now - self._taken_at > STILL_SECONDS:
            self.transport.abort()


@dataclass
class _Server:
    """The connections that are open now, and the headers of every answer."""

    connections: set[_Watched] = field(default_factory=set)
    rules: Callable[[], Mapping[str, str]] = dict


_server = _Server()


class Http(_Watched, H11Protocol):
    """A connection for requests, which must arrive in time."""

    _asked_at, _last = 0.0, cast(Any, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._asked_at = self._taken_at
        if free_descriptors() < reserve() * 3 // 4:  # none to wait with for what it wants
            self._answer(503, SENTENCE)

    def send_400_response(self, msg: str) -> None:
        self._answer(400, msg)

    def _answer(self, status: int, sentence: str) -> None:
        """Answers what is no request, and closes the connection; in the middle of another answer it only
        closes it."""
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
            return
        headers = {
            **_server.rules(),
            "content-type": "; ".join(("text/plain", "charset=utf-8")),
            "content-length": str(len(sentence.encode())),
            "connection": "close",
        }
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *map(": ".join, headers.items())]
        self.transport.write("\r\n".join([*lines, "", sentence]).encode())
        self.transport.close()

    def handle_websocket_upgrade(self, event: Any) -> None:
        _server.connections.discard(self)
        super().handle_websocket_upgrade(event)

    def close_if_stalled(self, now: float) -> None:
        super().close_if_stalled(now)
        cycle: Any = self.cycle  # None before the first request
        answering = cycle is not None and not cycle.response_complete
        if answering or cycle is not self._last or self.timeout_keep_alive_task is not None:
            self._asked_at, self._last = now, cycle
        if now - self._asked_at > HEAD_SECONDS:
            self.transport.close()


class Stream(_Watched, WebSocketsSansIOProtocol):
    """A websocket. An answer that is no websocket has the headers of all others."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._send_response = self.conn.send_response
        self.conn.send_response = self._send_with_rules  # type: ignore[method-assign]

    def _send_with_rules(self, response: Any) -> None:
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            missing = {k: v for k, v in _server.rules().items() if k not in response.headers}
            response.headers.update(missing)
        self._send_response(response)


class Loop(asyncio.SelectorEventLoop):
    """Python's own loop, but it accepts only a few connections at a time, so that the bounds see each of
    them; the others wait in the system. Without descriptors, Python's own would try to accept all that
    may wait, log a line for each, and repeat this for each of them a second later."""

    def _start_serving(  # Python's own name: the one place that knows how many are accepted at once
        self,
        factory: Any,
        sock: Any,
        ssl: Any = None,
        server: Any = None,
        backlog: int = 1,
        *rest: Any,
    ) -> None:
        at_once = min(backlog, ACCEPTED_AT_ONCE)
        super()._start_serving(factory, sock, ssl, server, at_once, *rest)  # type: ignore[misc]


async def reap_slow_readers() -> None:
    """Checks all connections every second until it is cancelled."""
    while True:
        await asyncio.sleep(1)
        now = time.monotonic()
        for connection in list(_server.connections):
            connection.close_if_stalled(now)


def bound_the_server(rules: Callable[[], Mapping[str, str]]) -> None:
    """Gives these bounds to the server that Streamlit starts later. rules: the headers of every answer, also
    of those that are given before the app is asked."""
    _server.rules = rules
    chosen = starlette_server._get_uvicorn_config_kwargs

    def bounded() -> dict[str, Any]:
        bounds: dict[str, Any] = {
            "http": Http,
            "ws": Stream,
            "timeout_graceful_shutdown": SECONDS_TO_ANSWER,
        }
        if sys.platform != "win32":
            bounds["loop"] = f"{__name__}:{Loop.__name__}"
        return chosen() | bounds

    setattr(starlette_server, "_get_uvicorn_config_kwargs", bounded)  # noqa: B010


# Sends answers in pieces, each when the reader has taken the one before it.
# An answer that is sent whole is copied for its connection and kept until its last byte is read. Many slow
# readers of one large answer would take all memory.

PIECE = 2**16  # bytes


class InPieces:
    """Sends large bodies in pieces."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            body = memoryview(message.get("body", b""))
            if message["type"] != "http.response.body" or len(body) <= PIECE:
                await send(message)
                return
            for start in range(0, len(body), PIECE):
                stop = start + PIECE
                more = stop < len(body) or message.get("more_body", False)
                await send({**message, "body": body[start:stop], "more_body": more})

        await self.app(scope, receive, send_pieces if scope["type"] == "http" else send)
