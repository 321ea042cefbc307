"""Files that visitors send: together they take no more than a bound, and none is waited for without end."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartParser
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from tests.cases import cases
from viz.server import connections, uploads
from viz.server.uploads import FORM_BYTES, FULL, LATE, Uploads

MOST = 10 * FORM_BYTES


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    kept = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=kept))
    monkeypatch.setattr(uploads, "most_bytes", lambda: MOST)
    monkeypatch.setattr(MultiPartParser, "spool_max_size", MultiPartParser.spool_max_size)
    return kept


class Server:
    """Keeps what is sent, as Streamlit does, behind the bounds."""

    def __init__(self, files: MemoryUploadedFileManager) -> None:
        self.files, self.bounded = files, Uploads(self._keep)

    async def _keep(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = await Request(scope, receive).body()
        session, file = scope["path"].rsplit("/", 2)[1:]
        self.files.add_file(session, UploadedFileRec(file, "name", "text/plain", content))
        await Response(status_code=204)(scope, receive, send)

    async def put(
        self,
        size: int,
        file: str = "a",
        session: str = "one",
        arrives: asyncio.Event | None = None,
        *,
        body: bytes | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> tuple[int, str]:
        """Sends a file; the status and the sentence of the answer. arrives: when the last byte does."""
        path = f"/_stcore/upload_file/{session}/{file}"
        length = (b"content-length", str(size).encode())
        scope = {"type": "http", "method": "PUT", "path": path, "headers": [length, *headers]}
        status, said = 0, b""

        async def receive() -> Message:
            if arrives is not None:
                await arrives.wait()
            return {
                "type": "http.request",
                "body": bytes(size) if body is None else body,
                "more_body": False,
            }

        async def send(message: Message) -> None:
            nonlocal status, said
            status, said = message.get("status", status), said + message.get("body", b"")

        await self.bounded(scope, receive, send)
        return status, said.decode()


def test_files_of_all_sessions_together_stay_within_the_bound(
    files: MemoryUploadedFileManager,
) -> None:
    async def send() -> list[int]:
        server = Server(files)
        return [(await server.put(3 * FORM_BYTES, str(n), f"session {n}"))[0] for n in range(5)]

    assert asyncio.run(send()) == [204, 204, 204, 503, 503]


def test_files_on_their_way_count_too(files: MemoryUploadedFileManager) -> None:
    async def send() -> tuple[list[tuple[int, str]], tuple[int, str]]:
        server, arrives = Server(files), asyncio.Event()
        both = [
            asyncio.create_task(server.put(5 * FORM_BYTES, name, arrives=arrives)) for name in "ab"
        ]
        await asyncio.sleep(0)
        refused = await server.put(1, "c")
        arrives.set()
        return await asyncio.gather(*both), refused

    came, refused = asyncio.run(send())
    assert [status for status, _ in came] == [204, 204]
    assert refused == (503, FULL)


def test_one_who_sends_much_slowly_gives_way_to_one_who_sends_little(
    files: MemoryUploadedFileManager,
) -> None:
    async def send() -> tuple[list[tuple[int, str]], list[int]]:
        server, never = Server(files), asyncio.Event()
        slow = [
            asyncio.create_task(server.put(size * FORM_BYTES, f"{size}", "much", arrives=never))
            for size in (6, 4)
        ]
        await asyncio.sleep(0)
        little = [(await server.put(FORM_BYTES, "a", f"{n}"))[0] for n in range(8)]
        never.set()
        return await asyncio.gather(*slow), little

    slow, little = asyncio.run(send())
    assert little == [204] * 8
    assert slow == [(503, FULL)] * 2


def test_files_that_no_page_has_read_make_room_where_one_session_has_most_of_it(
    files: MemoryUploadedFileManager,
) -> None:
    async def send() -> list[int]:
        server = Server(files)
        much = [(await server.put(5 * FORM_BYTES, file, "much"))[0] for file in "ab"]
        return [*much, (await server.put(2 * FORM_BYTES, "c", "little"))[0]]

    assert asyncio.run(send()) == [204] * 3
    assert {name: list(kept) for name, kept in files.file_storage.items() if kept} == {
        "much": ["b"],
        "little": ["c"],
    }


def test_many_small_files_count_with_what_is_around_them(files: MemoryUploadedFileManager) -> None:
    async def send() -> list[int]:
        server = Server(files)
        return [(await server.put(0, str(number)))[0] for number in range(12)]

    assert asyncio.run(send()) == [204] * 10 + [503] * 2


@cases("freed", ["read by its page", "of a session that has ended", "sent again"])
def test_what_is_kept_no_longer_makes_room(freed, files: MemoryUploadedFileManager) -> None:
    async def send() -> int:
        server = Server(files)
        await server.put(6 * FORM_BYTES, "a", "one")
        assert (await server.put(6 * FORM_BYTES, "b", "two"))[0] == 503
        if freed == "read by its page":
            files.remove_file("one", "a")
        elif freed == "sent again":
            await server.put(1, "a", "one")
        else:
            files.remove_session_files("one")
        return (await server.put(6 * FORM_BYTES, "b", "two"))[0]

    assert asyncio.run(send()) == 204


def test_a_file_that_no_page_reads_makes_room_in_time(
    files: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send() -> int:
        server = Server(files)
        await server.put(6 * FORM_BYTES, "a", "one")
        await server.put(2 * FORM_BYTES, "b", "one")
        monkeypatch.setattr(uploads, "UNREAD_SECONDS", -1.0)
        return (await server.put(6 * FORM_BYTES, "c", "two"))[0]

    assert asyncio.run(send()) == 204
    assert {name: list(kept) for name, kept in files.file_storage.items() if kept} == {
        "one": ["b"],
        "two": ["c"],
    }


def test_a_file_whose_rest_never_comes_is_not_waited_for(
    files: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.0)
    monkeypatch.setattr(uploads, "SLOWEST", 1e9)

    async def send() -> list[tuple[int, str]]:
        server = Server(files)
        return [await server.put(9 * FORM_BYTES, arrives=asyncio.Event()) for _ in range(2)]

    assert asyncio.run(send()) == [(408, LATE)] * 2


def test_a_file_stays_in_memory(
    files: MemoryUploadedFileManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder for temporary files that is not there, only what would be written to it takes notice."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    content = bytes(3 * 1024 * 1024)  # Starlette writes from 1 MB on
    monkeypatch.setattr(uploads, "most_bytes", lambda: 2 * len(content))
    body = b"".join(
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
            content,
            b"\r\n--b--\r\n",
        )
    )
    found = b""

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal found
        async with Request(scope, receive).form() as form:
            file = form["file"]
            assert isinstance(file, UploadFile)
            found = await file.read()
        await Response(status_code=204)(scope, receive, send)

    server = Server(files)
    server.bounded.app = read
    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    assert asyncio.run(server.put(len(body), body=body, headers=headers))[0] == 204
    assert found == content
