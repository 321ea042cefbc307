"""A small package index on this computer, whose answers can stop half-way."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class PackageIndex(ThreadingHTTPServer):
    """Serves the wheels of a folder. `pause`: bytes of a wheel after which an answer waits until `go_on` is
    set. `asked` notes every range of bytes that was asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.folder = folder
        self.pause: int | None = None
        self.go_on = threading.Event()
        self.asked: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple/"


@contextmanager
def serving_wheels(folder: Path) -> Iterator[PackageIndex]:
    index = PackageIndex(folder)
    thread = threading.Thread(target=index.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.go_on.set()
        index.shutdown()
        index.server_close()
        thread.join()


class _Answer(BaseHTTPRequestHandler):
    server: PackageIndex
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        file = self.server.folder / self.path.rpartition("/")[2]
        if file.suffix == ".whl":
            self._send(file.read_bytes())
            return
        wheels = self.server.folder.glob("*.whl")
        links = (f'<a href="/files/{wheel.name}">{wheel.name}</a>' for wheel in wheels)
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def _send(self, content: bytes) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        pause = len(content) if self.server.pause is None else self.server.pause
        try:
            self.wfile.write(content[start : max(start, pause)])
            self.wfile.flush()
            if pause < len(content):
                self.server.go_on.wait()
                self.wfile.write(content[max(start, pause) :])
        except ConnectionError:  # the download was stopped
            self.close_connection = True
