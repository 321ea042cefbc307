"""The one real server of a run of the tests, whatever the number of its workers: visitors are parted by their
sessions. The first worker that needs it starts it; the process that pytest was started in ends it.

It refuses every reach for another machine and every program, and writes them down (tests/guarded_server.py).
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.once import once, place
from tests.server import READY, Server
from tools.on_cluster import ADDRESS, SETTING

NAME = "server"
# Room for the models of all workers' tests: otherwise they drive each other's out.
SETTINGS = {"ATTENTION_MODEL_MB": "2000", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Shared:
    """Where the server answers, what it says, and what it reached for: no file as long as that is nothing."""

    port: int
    log: Path
    reached: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def shared() -> Shared:
    """The server of this run, which answers."""
    folder = once(NAME, _start)
    return Shared(int((folder / "port").read_text()), folder / "log", place("reached"))


def _start(half: Path) -> None:
    guarded = ("tests.guarded_server", str(place("reached")))
    on_cluster = {SETTING: os.environ[ADDRESS]} if ADDRESS in os.environ else {}
    program = ("viz.server",) if on_cluster else guarded  # a cluster is reached for
    server = Server(half / "log", program, SETTINGS | on_cluster)
    server.start(start_new_session=True)  # it outlives the worker that needed it first
    server.wait(READY)
    (half / "port").write_text(str(server.port))
    (half / "process").write_text(str(server.process.pid))
    server.process.returncode = 0  # nobody waits for it here


def process() -> int | None:
    """The number of its process; None where no test of this run needed it."""
    file = place(NAME) / "process"
    return int(file.read_text()) if file.is_file() else None


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and (number := process()):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGTERM)
