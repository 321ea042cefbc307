"""A server of our own, on a free port of this machine, ended after its use."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SECONDS_TO_START = 300
HEALTHY, READY = "/_stcore/health", "/readyz"  # it answers; the default model is loaded too


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A server in a process of its own, which can be ended and started again at the same address.

    program: what Python runs as a module, with its arguments. more: settings beside the usual ones.
    python: that of another environment. folder: where the process starts.
    """

    log: Path
    program: Sequence[str] = ("viz.server",)
    more: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    python: str | Path = sys.executable
    folder: Path = REPOSITORY

    def start(self, **how: Any) -> None:
        """how: for the process, beside the usual."""
        settings = {
            "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
            "STREAMLIT_SERVER_PORT": str(self.port),
            "STREAMLIT_SERVER_HEADLESS": "true",
            "ATTENTION_FETCH": "none",
            **self.more,
        }
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [self.python, "-m", *self.program],
                cwd=self.folder,
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                **how,
            )

    def wait(self, path: str = READY) -> None:
        """Waits until the path answers. Raises RuntimeError if the server does not come up."""
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.address + path, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, TimeoutError, ConnectionError):
                pass
            time.sleep(0.1)
        raise RuntimeError(f"The server is not ready:\n{self.log.read_text()[-4000:]}")

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def memory(self) -> float:
        """Megabytes that the process holds now."""
        return self._megabytes("VmRSS")

    @property
    def peak(self) -> float:
        """The most megabytes that it ever held."""
        return self._megabytes("VmHWM")

    @property
    def processor(self) -> float:
        """Seconds of a processor that the process has used, all its threads together (Linux)."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def _megabytes(self, name: str) -> float:
        return megabytes_of(self.process.pid, name)


def megabytes_of(process: int, name: str = "VmRSS") -> float:
    """What a process holds now, or another field of its status."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


@contextmanager
def serving(
    log: Path,
    models: Path | None = None,
    more: Mapping[str, str] | None = None,
    program: Sequence[str] = ("viz.server",),
    until: str = READY,
) -> Iterator[Server]:
    """A server started as `make run` does, once the path `until` answers; `models` holds the folders of
    more models, `more` settings. program: what to start in its place."""
    if models is not None:
        program = ("bench.serve", str(models))
    server = Server(log, program, more or {})
    server.start()
    try:
        server.wait(until)
        yield server
    finally:
        server.end()


def numbers(server: Server) -> dict[str, float]:
    """What a server counts at `/metrics`: the sum of each metric over its labels."""
    with urllib.request.urlopen(f"{server.address}/metrics", timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    found: dict[str, float] = {}
    for line in lines:
        name = re.split(r"[{ ]", line)[0]
        found[name] = found.get(name, 0.0) + float(line.rpartition(" ")[2])
    return found
