"""Python in a process of its own, for work that may take too long, or too much memory, and must be ended."""

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from model.system import bounded_process
from model.system.bounded_process import LOADING
from model.system.settings import environment_with

TO_END = 5.0  # seconds in which a process that takes too long ends by itself
CLOSED_IDLE = 0  # exit status of a process that was not used for a while

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
    line = [sys.executable, "-P", bounded_process.__file__, str(os.getpid()), *arguments]
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


class Bounded:
    """A Python file in a process of its own that answers questions, each within bounds of time and memory. It
    starts when it is first needed, and anew after one that took too much."""

    def __init__(
        self, file: str, size: int, given: Callable[[], object], **environment: str
    ) -> None:
        """
        Args:
            file: defines `load`, as `bounded_process` says.
            size: bytes of memory that an answer may take.
            given: makes what `load` gets.
            environment: variables beside those of this process.
        """
        self._file, self._size, self._given, self._environment = file, size, given, environment
        self._alone = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: object, seconds: int) -> dict[str, Any]:
        """The answer. Raises ValueError where it takes too much, and with the file's own error."""
        with self._alone:
            for _ in range(2):  # one that was not used for a while has ended
                process = self._process = self._process or self._started()
                with ended_after(process, seconds + TO_END):  # where it does not end by itself
                    said = _told(process, {"question": question, "seconds": seconds})
                    self._process = process if said.endswith(b"\n") else None
                    if self._process or process.wait() != CLOSED_IDLE:
                        break
            is_ended = self._process is None
        if is_ended:
            raise ValueError(
                f"that takes more than {seconds} seconds or {self._size / 1e9:.1f} GB of memory"
            )
        answer: dict[str, Any] = json.loads(said)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _started(self) -> "subprocess.Popen[bytes]":
        process = start_python([self._file], **self._environment)
        weakref.finalize(self, _end, process)
        with ended_after(process, LOADING + TO_END):
            _told(process, {"given": self._given(), "bytes": self._size})
        return process


def _told(process: "subprocess.Popen[bytes]", line: dict[str, object]) -> bytes:
    """Writes a line to the process; returns its answer, or nothing where it has ended."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("The process has no pipes.")
    try:
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return b""


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    # Closes its pipes and waits for its end. A question that it has not read is lost.
    with suppress(BrokenPipeError), process:
        pass
