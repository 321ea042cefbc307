"""A server of our own for a measurement, on a free port of this machine, ended after it."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS_TO_START = 120


@dataclass(frozen=True)
class Server:
    """A running server: its address and its process."""

    port: int
    process: subprocess.Popen[bytes]

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

    def _megabytes(self, name: str) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


@contextmanager
def serving(
    log: Path,
    models: Path | None = None,
    more: Mapping[str, str] | None = None,
    module: str = "viz.server",
) -> Iterator[Server]:
    """Starts the app as `make run` does; `models` holds the folders of more models, `more` settings.
    module: what to start in its place."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    settings = {
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        "STREAMLIT_SERVER_PORT": str(port),
        "STREAMLIT_SERVER_HEADLESS": "true",
        **(more or {}),
    }
    program = [module] if models is None else ["tests.bench.serve", str(models)]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", *program],
            cwd=REPOSITORY,
            env=os.environ | settings,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            server = Server(port, process)
            wait_until_ready(server, log)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def numbers(server: Server) -> dict[str, float]:
    """What a server counts at `/metrics`: the sum of each metric over its labels."""
    with urllib.request.urlopen(f"{server.address}/metrics", timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    found: dict[str, float] = {}
    for line in lines:
        name = re.split(r"[{ ]", line)[0]
        found[name] = found.get(name, 0.0) + float(line.rpartition(" ")[2])
    return found


def wait_until_ready(server: Server, log: Path) -> None:
    """Waits until the default model is loaded. Raises RuntimeError if the server does not come up."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.address}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            pass
        time.sleep(0.2)
    raise RuntimeError(f"The server is not ready:\n{log.read_text()[-4000:]}")
