"""A small server that speaks the hub's file protocol on this computer."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from tests.local_server import Answer, LocalServer, answering

REVISION = "0123456789abcdef0123456789abcdef01234567"


class Hub(LocalServer):
    """Serves the files of folders under the names of repositories.

    `deaths`: bytes after which the connection ends, for one large answer after another. `asked`
    notes every range of bytes that was asked for.
    """

    def __init__(self, repositories: dict[str, Path]) -> None:
        super().__init__(_Answer)
        self.repositories = repositories
        self.deaths: list[int] = []
        self.wrong_hash = False
        self.slowly = 0.0  # seconds between two pieces
        self.asked: list[tuple[str, str | None]] = []


@contextmanager
def serving(repositories: dict[str, Path]) -> Iterator[Hub]:
    with answering(Hub(repositories)) as hub:
        yield hub


class _Answer(Answer):
    server: Hub

    def answer(self) -> None:
        path = unquote(self.path.partition("?")[0]).strip("/")
        if path.startswith("api/models/"):
            self._describe(path.removeprefix("api/models/").partition("/revision/")[0])
            return
        repository, _, rest = path.partition("/resolve/")
        folder = self.server.repositories.get(repository)
        file = None if folder is None else folder / rest.partition("/")[2]
        if file is None or not file.is_file():
            self.whole(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        self._send(file.name, file.read_bytes())

    def _describe(self, repository: str) -> None:
        folder = self.server.repositories.get(repository)
        if folder is None:
            self.whole(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        siblings = []
        for file in sorted(folder.iterdir()):
            content = file.read_bytes()
            sibling = {
                "rfilename": file.name,
                "size": len(content),
                "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
            }
            if file.suffix == ".safetensors":
                digest = hashlib.sha256(b"other" if self.server.wrong_hash else content).hexdigest()
                sibling["lfs"] = {"size": len(content), "sha256": digest, "pointerSize": 130}
            siblings.append(sibling)
        described = {"id": repository, "modelId": repository, "sha": REVISION, "private": False,
                     "siblings": siblings, "tags": [], "downloads": 0, "likes": 0}  # fmt: skip
        self.whole(200, json.dumps(described).encode(), {"Content-Type": "application/json"})

    def _send(self, name: str, content: bytes) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append((name, asked))
        part = content[self.begun(content, asked) :]
        deaths = self.server.deaths
        if deaths and len(part) > deaths[0] and name.endswith(".safetensors"):
            self.wfile.write(part[: deaths.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            return
        for at in range(0, len(part), 65_536):
            if self.server.slowly:
                threading.Event().wait(self.server.slowly)
            self.wfile.write(part[at : at + 65_536])
