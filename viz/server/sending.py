"""Sends answers in pieces, each when the reader has taken the one before it.

An answer that is sent whole is copied for its connection and kept until its last byte is read. Many slow
readers of one large answer would take all memory.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 2**16  # bytes
MOST_WAITING = 2**26  # bytes of answers that wait for their readers; beyond it, layers are not made

_waiting = 0


def is_crowded() -> bool:
    """Whether too much waits for its readers to add anything large."""
    return _waiting > MOST_WAITING


def unless_crowded(
    offer: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Refuses an address (503) while too much waits for its readers. The explorer then asks through the
    page."""

    async def offered(request: Request) -> Response:
        if is_crowded():
            sentence = "Many layers are on their way. Try again soon."
            return PlainTextResponse(sentence, status_code=503)
        return await offer(request)

    return offered


class InPieces:
    """Sends large bodies in pieces."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            global _waiting
            body = memoryview(message.get("body", b""))
            if message["type"] != "http.response.body" or len(body) <= PIECE:
                await send(message)
                return
            _waiting += len(body)
            try:
                for start in range(0, len(body), PIECE):
                    stop = start + PIECE
                    more = stop < len(body) or message.get("more_body", False)
                    await send({**message, "body": body[start:stop], "more_body": more})
            finally:
                _waiting -= len(body)

        await self.app(scope, receive, send_pieces if scope["type"] == "http" else send)
