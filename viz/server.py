"""The ASGI face of the app: starts the engine before the first visitor, says when it is ready, and
sends the security headers. `python -m viz.server` is what `make run` starts."""

import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from streamlit.web import cli

from viz.examples import FIRST
from viz.shared import engine

APP = Path(__file__).parent.parent / "app.py"
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# The hash is that of one inline script in Streamlit's own index.html; blob: carries components.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' blob: 'sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA='",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    )
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class SecurityHeaders:
    """Adds the headers to every HTTP response."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [
                    *(
                        pair
                        for pair in message.get("headers", [])
                        if pair[0].decode() not in HEADERS
                    ),
                    *own,
                ]
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


async def ready(_: Request) -> Response:
    """200 once the default model is loaded, 503 until then."""
    if engine().has(FIRST.model):
        return PlainTextResponse("ready")
    return PlainTextResponse("loading", status_code=503)


def preload() -> None:
    """Loads the default model. A refusal is left to the page, which says it to the visitor."""
    try:
        engine().model(FIRST.model, lambda sentence, share: None)
    except ValueError as error:
        print(f"The default model is not ready: {error}", flush=True)


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    threading.Thread(target=preload, name="preload", daemon=True).start()
    yield


app = st.App(
    APP,
    routes=[Route("/readyz", ready)],
    middleware=[Middleware(SecurityHeaders)],
    lifespan=lifespan,
)

if __name__ == "__main__":  # the command line, so that STREAMLIT_SERVER_PORT and the like count
    cli.main(["run", __file__, *sys.argv[1:]], prog_name="streamlit")
