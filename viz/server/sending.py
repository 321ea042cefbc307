"""Sends answers in pieces, each when the reader has taken the one before it.

An answer that is sent whole is copied for its connection and kept until its last byte is read. Many slow
readers of one large answer would take all memory.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
