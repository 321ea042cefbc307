"""Five sessions that a server must bear: `python -m bench.hostile PORT` goes on until it is ended, and
then tells how often each did what it does.
"""

import asyncio
import json
import signal
import socket
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from websockets.asyncio.client import connect

from bench.sessions import sentence
from tests.visitor import Visitor
from viz.explorer.assets import PLOTLY_ADDRESS

PAUSE = 0.1  # seconds between two acts of one session
BURST = 100  # messages at once
HELD = 100  # connections that one of them keeps open
FORGOTTEN = 20  # pages
UNUSED = (BackMsg(load_git_info=True), BackMsg(clear_cache=True), BackMsg(stop_script=True))


async def reconnect(port: int, done: Counter[str]) -> None:
    """Comes back to its session without having left it, again and again."""
    session = ""
    while True:
        visitor = Visitor(port, "", urlencode({"text": sentence(0)}), session=session)
        async with visitor:
            session = visitor.session
        done["reconnections"] += 1
        await asyncio.sleep(PAUSE)


async def read_slowly(port: int, done: Counter[str]) -> None:
    """Asks for Plotly's script, which is the largest answer, on many connections, and takes nothing of it."""
    held: deque[socket.socket] = deque(maxlen=HELD)
    asked = f"GET /{PLOTLY_ADDRESS} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    while True:
        held.append(await _connected(port, asked.encode()))
        done["answers not read"] += 1
        await asyncio.sleep(PAUSE)


async def flood(port: int, done: Counter[str]) -> None:
    """Sends messages in bursts and reads none: clicks, what the app does not use, and no messages at all."""
    while True:
        async with _stream(port) as stream:
            for number in range(10 * BURST):
                query = urlencode({"text": sentence(number), "mask": "none"})
                click = BackMsg(rerun_script=ClientState(page_name="", query_string=query))
                message = click if number % 2 else UNUSED[number // 2 % len(UNUSED)]
                await stream.send(message.SerializeToString())
                done["messages"] += 1
                if number % BURST == 0:
                    await asyncio.sleep(PAUSE)


async def forget_pages(port: int, done: Counter[str]) -> None:
    """Opens pages that have much to do, one after another, and looks at none of them again."""
    held: deque[AsyncExitStack] = deque()
    for number in range(10**9):
        link = urlencode({"text": sentence(number), "show": "Leave one out"})
        stay = AsyncExitStack()
        await stay.enter_async_context(Visitor(port, "all_heads", link))
        done["pages forgotten"] += 1
        held.append(stay)
        if len(held) > FORGOTTEN:
            await held.popleft().aclose()
        await asyncio.sleep(PAUSE)


async def send_halves(port: int, done: Counter[str]) -> None:
    """Begins requests and never ends them."""
    held: deque[socket.socket] = deque(maxlen=HELD)
    while True:
        held.append(await _connected(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-"))
        done["half requests"] += 1
        await asyncio.sleep(PAUSE)


KINDS: tuple[Callable[[int, Counter[str]], Awaitable[None]], ...] = (
    reconnect,
    read_slowly,
    flood,
    forget_pages,
    send_halves,
)


def _stream(port: int) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        compression=None,
    )


async def _connected(port: int, sent: bytes) -> socket.socket:
    """A connection that has sent this and whose system takes little for it."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(raw, ("127.0.0.1", port))
    await loop.sock_sendall(raw, sent)
    return raw


async def _again_and_again(
    kind: Callable[[int, Counter[str]], Awaitable[None]], port: int, done: Counter[str]
) -> None:
    """Whoever is turned away or cut off begins anew."""
    while True:
        try:
            await kind(port, done)
        except Exception:  # whatever the server does about it
            done["times cut off"] += 1
            await asyncio.sleep(1.0)


async def main(port: int) -> None:
    done: Counter[str] = Counter()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    tasks = [asyncio.create_task(_again_and_again(kind, port, done)) for kind in KINDS]
    await ended.wait()
    for task in tasks:
        task.cancel()
    print(json.dumps(done), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
