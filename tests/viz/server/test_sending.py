"""Answers wait for their readers in pieces."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Scope

from tests.cases import cases
from viz.server.connections import PIECE, InPieces

BODY = bytes(range(256)) * 2_000  # no whole number of pieces


class Reader:
    """Who asks for an address and, until it is told to, reads no more than a first piece."""

    def __init__(self, address: str) -> None:
        path, _, query = address.partition("?")
        self.scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": f"/{path}",
            "query_string": query.encode(),
            "headers": [],
        }
        self.reads = asyncio.Event()
        self.began = asyncio.Event()
        self.status = 0
        self.pieces: list[bytes] = []
        self.ended = False

    async def ask(self, app: Callable[..., Awaitable[None]]) -> None:
        async def receive() -> Message:
            return await asyncio.Future()

        await app(self.scope, receive, self._take)

    async def _take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.pieces.append(bytes(message["body"]))
        self.ended = not message.get("more_body", False)
        self.began.set()
        await self.reads.wait()


def app(route: Route) -> Starlette:
    return Starlette(routes=[route], middleware=[Middleware(InPieces)])


@cases("size", [0, 1, PIECE, PIECE + 1, len(BODY)])
def test_an_answer_comes_whole_and_no_piece_is_large(size) -> None:
    async def offer(_: object) -> Response:
        return Response(BODY[:size])

    async def read() -> Reader:
        reader = Reader("body")
        reader.reads.set()
        await reader.ask(app(Route("/body", offer)))
        return reader

    reader = asyncio.run(read())
    assert b"".join(reader.pieces) == BODY[:size]
    assert max(map(len, reader.pieces)) <= PIECE
    assert reader.ended


def test_who_reads_nothing_holds_one_piece_and_who_leaves_ends_the_answer() -> None:
    async def offer(_: object) -> Response:
        return Response(BODY)

    async def crowd() -> None:
        body = app(Route("/body", offer))
        reader, leaver = Reader("body"), Reader("body")
        reading, leaving = (asyncio.create_task(one.ask(body)) for one in (reader, leaver))
        await asyncio.gather(reader.began.wait(), leaver.began.wait())
        assert [len(piece) for piece in reader.pieces] == [PIECE]
        leaving.cancel()  # as for a connection that is lost
        await asyncio.wait([leaving])
        assert [len(piece) for piece in leaver.pieces] == [PIECE]
        reader.reads.set()
        await reading
        assert b"".join(reader.pieces) == BODY

    asyncio.run(crowd())
