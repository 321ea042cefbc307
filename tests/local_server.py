"""A small server on this computer, for a test that needs an answer from one."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar


class LocalServer(ThreadingHTTPServer):
    """On a free port, with a class that answers."""

    daemon_threads = True

    def __init__(self, answer: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), answer)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


Server = TypeVar("Server", bound=LocalServer)


@contextmanager
def answering(server: Server) -> Iterator[Server]:
    """The server at work in a thread, ended afterwards."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Answer(BaseHTTPRequestHandler):
    """One request; it writes no log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        """What a kind of server says to a request."""
        raise NotImplementedError

    def whole(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answers in one piece."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begun(self, content: bytes, asked: str | None) -> int:
        """Sends the headers for the bytes that a range asks for, to the end; None: for all. Returns where
        they start."""
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        return start
