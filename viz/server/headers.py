"""What the app tells a visitor's browser to forbid: the content security policy and related headers."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import streamlit

from model.system.settings import settings

_INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_FORBIDDEN_DEVICES = (
    "accelerometer camera display-capture geolocation gyroscope magnetometer microphone midi "
    "payment usb"
)


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
            f"script-src 'self' blob: {own_scripts}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
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
