"""Python in a process of its own, for work that may take too long, or too much memory, and must be ended."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from model.system import ends_with_parent
from model.system.settings import environment_with

# Linux ends a process with the thread that started it: this one lives as long as the server.
_STARTER = ThreadPoolExecutor(1, "starter")


def start_python(
    arguments: Sequence[str], *, stdout: Any = subprocess.PIPE, **environment: str
) -> "subprocess.Popen[bytes]":
    """Starts Python with a file, or `-m` and a module, and its arguments.

    On Linux it ends with this process, also where that is killed or the other one is stopped. stdout: a file
    for all that it writes; without one, its output is a pipe and its errors are dropped. environment:
    variables beside those of this process.
    """
    line = [sys.executable, "-P", ends_with_parent.__file__, str(os.getpid()), *arguments]
    piped = stdout == subprocess.PIPE
    return _STARTER.submit(
        subprocess.Popen,
        line,
        stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.DEVNULL if piped else subprocess.STDOUT,
        env=environment_with(**environment),
    ).result()


@contextmanager
def ended_after(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[None]:
    """Kills a process on which the body waits for longer: its pipes close, and nobody waits any more. It need
    not cooperate."""
    clock = threading.Timer(seconds, process.kill)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
