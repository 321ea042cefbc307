"""Bounds on the files that visitors send: the bytes of all of them together, and how long one may take. Where
there is no room, the session that has the most of it gives way.

Streamlit itself waits for ever for the rest of a file, and keeps each in memory until its session ends.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass

import streamlit as st
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartParser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from model.system.settings import settings
from viz.notation.words import sentences_of
from viz.server import connections

say = sentences_of("server.uploads")

FORM_BYTES = 64 * 1024  # around a file
SLOWEST = 100_000  # bytes a second, once the time is over that any request has
UNREAD_SECONDS = 60.0  # after which a file that no page has read makes room for those of others
FULL = say("others_sending_files")
LATE = say("file_did_not_arrive")


def largest_body() -> int:
    """Bytes of the largest body with a file."""
    return int(st.get_option("server.maxUploadSize")) * 1024 * 1024 + FORM_BYTES


def most_bytes() -> int:
    """Bytes of all files that are on their way or that no page has read yet."""
    return max(settings().trace_bytes, largest_body())


@dataclass(frozen=True)
class Sent:
    """A file that has come."""

    at: float  # of the clock
    size: int  # bytes, with what stands around it


@dataclass(eq=False)
class Coming:
    """A file on its way."""

    session: str
    size: int  # bytes that it may have
    ends: asyncio.Timeout
    gives_way: bool = False


class Uploads:
    """Refuses a file for which there is no room, and one that comes too slowly. It gets only requests that
    send a file and may."""

    def __init__(self, app: ASGIApp) -> None:
        MultiPartParser.spool_max_size = largest_body()  # larger files would be written to the disk
        self.app = app
        self._coming: list[Coming] = []  # the oldest first
        self._kept: dict[tuple[str, str], Sent] = {}  # session and file; the oldest first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "PUT":
            await self.app(scope, receive, send)
            return
        size = max(int(Headers(scope=scope).get("content-length", "0")), FORM_BYTES)
        session, file = scope["path"].rsplit("/", 2)[1:]
        if not self._make_room(session, size):
            await _refusal(503, FULL)(scope, receive, send)
            return
        ends = asyncio.timeout(connections.HEAD_SECONDS + size / SLOWEST)
        coming = Coming(session, size, ends)
        self._coming.append(coming)
        try:
            await self._in_time(coming, scope, receive, send)
        finally:
            if coming in self._coming:
                self._coming.remove(coming)
            self._kept.pop((session, file), None)
            self._kept[session, file] = Sent(time.monotonic(), size)

    async def _in_time(self, coming: Coming, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def send_noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            async with coming.ends:
                await self.app(scope, receive, send_noted)
        except TimeoutError:
            if not began:
                refusal = _refusal(503, FULL) if coming.gives_way else _refusal(408, LATE)
                await refusal(scope, receive, send)

    def _room(self) -> int:
        """Bytes for which there is room. What a page has read, or what belongs to a session that has ended,
        is not counted."""
        stored = _uploaded_files().file_storage
        self._kept = {
            (session, file): sent
            for (session, file), sent in self._kept.items()
            if file in stored.get(session, ())
        }
        return most_bytes() - sum(self._has().values())

    def _has(self) -> Counter[str]:
        """Bytes of each session that are counted."""
        has = Counter[str]()
        for (session, _), sent in self._kept.items():
            has[session] += sent.size
        for coming in self._coming:
            has[coming.session] += coming.size
        return has

    def _make_room(self, session: str, size: int) -> bool:
        """Whether there is room, once others gave way: files that nobody has read for long, then those of a
        session that has more than this one with its new file, the oldest first."""
        since = time.monotonic() - UNREAD_SECONDS
        old = [key for key, sent in self._kept.items() if sent.at < since]
        while self._room() < size:
            has = self._has()
            most = max(has, key=has.__getitem__, default=session)
            if old:
                _uploaded_files().remove_file(*old.pop(0))
            elif has[most] > has[session] + size:
                self._give_way(most)
            else:
                return False
        return True

    def _give_way(self, session: str) -> None:
        """Drops the oldest file of a session that no page has read, or ends one that is on its way."""
        kept = next((file for one, file in self._kept if one == session), None)
        if kept is not None:
            _uploaded_files().remove_file(session, kept)
            return
        coming = next(one for one in self._coming if one.session == session)
        self._coming.remove(coming)
        if not coming.ends.expired():
            coming.gives_way = True
            coming.ends.reschedule(asyncio.get_running_loop().time())


def _uploaded_files() -> MemoryUploadedFileManager:
    files = runtime.get_instance().uploaded_file_mgr
    if not isinstance(files, MemoryUploadedFileManager):
        raise TypeError("Streamlit keeps its files elsewhere.")
    return files


def _refusal(status: int, sentence: str) -> PlainTextResponse:
    return PlainTextResponse(sentence, status, {"connection": "close"})
