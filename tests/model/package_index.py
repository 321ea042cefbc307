"""A small package index on this computer, whose answers can stop half-way."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.local_server import Answer, LocalServer, answering


class PackageIndex(LocalServer):
    """Serves the wheels of a folder. `pause`: bytes of a wheel after which an answer waits until `go_on` is
    set. `asked` notes every range of bytes that was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_Answer)
        self.folder = folder
        self.pause: int | None = None
        self.go_on = threading.Event()
        self.asked: list[str | None] = []

    @property
    def address(self) -> str:
        return f"{super().address}/simple/"


@contextmanager
def serving_wheels(folder: Path) -> Iterator[PackageIndex]:
    with answering(PackageIndex(folder)) as index:
        try:
            yield index
        finally:
            index.go_on.set()


class _Answer(Answer):
    server: PackageIndex

    def answer(self) -> None:
        file = self.server.folder / self.path.rpartition("/")[2]
        if file.suffix == ".whl":
            self._send(file.read_bytes())
            return
        wheels = self.server.folder.glob("*.whl")
        links = (f'<a href="/files/{wheel.name}">{wheel.name}</a>' for wheel in wheels)
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()
        self.whole(200, page, {"Content-Type": "text/html"})

    def _send(self, content: bytes) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        start = self.begun(content, asked)
        pause = len(content) if self.server.pause is None else self.server.pause
        try:
            self.wfile.write(content[start : max(start, pause)])
            self.wfile.flush()
            if pause < len(content):
                self.server.go_on.wait()
                self.wfile.write(content[max(start, pause) :])
        except ConnectionError:  # the download was stopped
            self.close_connection = True
