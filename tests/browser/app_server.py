"""The app served by a process of our own, for tests that need it in a browser."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS_TO_START = 300
SETTINGS = {
    "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
    "STREAMLIT_SERVER_HEADLESS": "true",
    "STREAMLIT_SERVER_FILE_WATCHER_TYPE": "none",
    "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class AppServer:
    """A server that runs inside `with`. It can be ended and started again at the same address."""

    log: Path
    command: Sequence[str] = (sys.executable, "-m", "viz.server")
    port: int = field(default_factory=free_port)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the process with the environment as it is now."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                cwd=REPOSITORY,
                env=os.environ | SETTINGS | {"STREAMLIT_SERVER_PORT": str(self.port)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + SECONDS_TO_START
        while not self.is_healthy():
            if self.process.poll() is not None:
                pytest.fail(
                    f"The server ended with {self.process.returncode}:\n{self.log.read_text()}"
                )
            if time.monotonic() > deadline:
                pytest.fail(f"No answer after {SECONDS_TO_START} seconds:\n{self.log.read_text()}")
            time.sleep(0.1)

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=5) as answer:
                return answer.read() == b"ok"
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return False

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "AppServer":
        self.start()
        try:
            self.wait()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()
