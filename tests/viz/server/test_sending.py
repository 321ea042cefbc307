"""Answers wait for their readers in pieces, and only so many bytes of them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Scope

from model import load_model
from viz.explorer import endpoint
from viz.server import sending
from viz.server.sending import PIECE, InPieces, unless_crowded

BODY = bytes(range(256)) * 2_000  # no whole number of pieces
LONG = "The cat sat on the mat. " * 20


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


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, len(BODY)])
def test_an_answer_comes_whole_and_no_piece_is_large(size: int) -> None:
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


def test_who_reads_nothing_holds_one_piece_and_layers_are_refused_while_too_much_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = load_model("house-gpt").trace(LONG)
    address = f"{endpoint.address(run, None)}&layer=decoder.0.self"
    layers = app(Route("/layers", unless_crowded(endpoint.offer)))

    async def crowd() -> None:
        first = Reader(address)
        waiting = asyncio.create_task(first.ask(layers))
        await first.began.wait()
        assert [len(piece) for piece in first.pieces] == [PIECE]
        assert not sending.is_crowded()
        monkeypatch.setattr(sending, "MOST_WAITING", PIECE)  # less than one layer
        refused = await read_at_once(address)
        assert refused.status == 503
        assert b"Try again soon" in refused.pieces[0]
        first.reads.set()
        await waiting
        assert (await read_at_once(address)).pieces == first.pieces
        leaver = Reader(address)
        leaving = asyncio.create_task(leaver.ask(layers))
        await leaver.began.wait()
        leaving.cancel()  # as for a connection that is lost
        await asyncio.wait([leaving])
        assert (await read_at_once(address)).status == 200

    async def read_at_once(address: str) -> Reader:
        reader = Reader(address)
        reader.reads.set()
        await reader.ask(layers)
        return reader

    asyncio.run(crowd())
