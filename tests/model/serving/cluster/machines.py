"""Machines of a Ray cluster on this computer, with as much memory for models as a test wants."""

import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.system.cluster import HERE, _make_token, prepare

prepare(HERE, serving=True)  # before Ray is imported

from model.serving.cluster.messages import Bounds  # noqa: E402
from model.system import cluster_machine  # noqa: E402
from model.system.cluster_machine import Machine  # noqa: E402
from model.system.settings import MEGABYTE  # noqa: E402
from tests.folders import new_folder  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[4]
TRACES = 50 * MEGABYTE
LIVING = Bounds(
    500 * MEGABYTE, TRACES, idle_seconds=1e6
)  # of an actor that is never idle for too long
SECONDS = 120  # until something must have happened, on however busy a computer


class Machines:
    """The machines of one cluster; the first is its head."""

    def __init__(self) -> None:
        self.started: list[Machine] = []
        self.address = ""
        _make_token()

    def start(self, megabytes: int, **how: Any) -> Machine:
        """One more, with so much memory for models. how: of Ray's parameters."""
        folder = str(new_folder("ray"))
        params = functools.partial(cluster_machine.RayParams, memory=megabytes * MEGABYTE, **how)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster_machine, "RayParams", params)
            machine = Machine.start(folder, 1, self.address or None)
        self.started.append(machine)
        self.address = self.address or machine.gcs_address
        return machine

    def end(self) -> None:
        for machine in reversed(self.started):
            machine.kill_all_processes(check_alive=False, allow_graceful=False)


def remove(machine: Machine, *actors: int) -> None:
    """A machine that loses its power. actors: their processes on it."""
    machine.kill_all_processes(check_alive=False, allow_graceful=False)
    for one in actors:
        kill(one)


def until(happened: Callable[[], Any], what: str) -> Any:
    """Waits for it; what it then gives."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        if found := happened():
            return found
        time.sleep(0.05)
    raise AssertionError(f"It did not happen: {what}.")


class Stopped:
    """A process that stands still inside, as one that the network has lost, and goes on afterwards."""

    def __init__(self, process: int) -> None:
        self.process = process

    def __enter__(self) -> None:
        os.kill(self.process, signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        if Path(f"/proc/{self.process}").exists():
            os.kill(self.process, signal.SIGCONT)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
