"""The messages that a browser may send on the websocket: run the page, stop it, ask for a file.

Streamlit has more. Some of them act on all visitors (`clear_cache` empties all caches) or on the server
(`load_git_info` runs git and names files, `install_skills` writes folders). This app uses none of these,
so they never reach Streamlit.

No connection may send faster than a quick hand. What comes sooner stays unread until its time has come, which
slows down its sender alone.
"""

import asyncio
import math
import time
from collections.abc import Callable

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from viz.telemetry import metrics

MESSAGES = {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request"}
FILES_AT_ONCE = 8  # addresses for files that one message may ask for; a box takes one file
AT_ONCE, PER_SECOND = 40, 10.0  # messages of one connection
OPERATIONS = {"deferred_file"}  # of `backend_operation_request`


class UsedMessages:
    """Passes on the messages that this app uses. Others are counted and dropped; the websocket stays open."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pace = Pace(AT_ONCE, PER_SECOND)

        async def receive_used() -> Message:
            while True:
                await asyncio.sleep(pace.wait())
                message = await receive()
                if is_used(message):
                    return message
                metrics.count_unused_message()

        await self.app(scope, receive_used if scope["type"] == "websocket" else receive, send)


class Pace:
    """So many at once, and so many a second after that. clock: seconds that only grow."""

    def __init__(
        self, at_once: int, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._between, self._clock = 1 / per_second, clock
        self._ahead = at_once * self._between  # how far one may run ahead of the pace
        self._due = -math.inf

    def wait(self) -> float:
        """Counts one more; how many seconds it must wait."""
        now = self._clock()
        self._due = max(self._due, now - self._ahead) + self._between
        return max(self._due - now, 0.0)


def is_used(message: Message) -> bool:
    """Whether Streamlit gets a message: all but those that can be read and are not used. Streamlit itself
    closes the websocket where a message is too large or is not one of its own."""
    content = message.get("bytes")
    if message["type"] != "websocket.receive" or content is None:
        return True
    try:
        read = BackMsg.FromString(content)
    except DecodeError:
        return True
    kind = read.WhichOneof("type")
    if kind == "backend_operation_request":
        kind = read.backend_operation_request.WhichOneof("payload")
        return kind in OPERATIONS
    if kind == "file_urls_request":
        return len(read.file_urls_request.file_names) <= FILES_AT_ONCE
    return kind in MESSAGES
