"""Runs a Python file, or a module, in a process that ends with the one that started it, however that ends, on
Linux. It imports nothing of this project.

`python -P bounded_process.py PARENT FILE ARGUMENTS…` or `… PARENT -m MODULE ARGUMENTS…`

Where the file defines `load`, it answers questions: the first line of its input is what `load` gets, which
returns the function that answers. Each later line is a question, answered by one line. One that takes too
long or too much memory ends the process.
"""

import ctypes
import json
import os
import runpy
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

if sys.platform != "win32":  # which has no such bound
    import resource

END_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG
IDLE = 60  # seconds without a question after which it ends itself
LOADING, TO_LOAD = 60, 4 * 2**30  # seconds and bytes that `load` may take

Answering = Callable[[Any], dict[str, Any]]


def main() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):  # it has ended already
            return
    del sys.argv[:2]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    names = runpy.run_path(sys.argv[0], run_name="__main__")
    if "load" in names:
        _answer_all(names["load"])


def _answer_all(load: Callable[[Any], Answering]) -> None:
    signal.alarm(LOADING)  # it is not caught, so it ends the process
    _bound(TO_LOAD)
    given = json.loads(sys.stdin.buffer.readline())
    answer = load(given["given"])
    _bound(_taken() + given["bytes"])
    signal.alarm(0)
    print("ready", flush=True)  # the first question comes now: none waits unseen in a buffer
    while select.select([sys.stdin.buffer], [], [], IDLE)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            break
        asked = json.loads(line)
        signal.alarm(asked["seconds"])
        try:
            said = answer(asked["question"])
        except BaseException as error:  # a panic of a library in Rust is no Exception
            said = {"error": (str(error).strip() or type(error).__name__).splitlines()[0][:200]}
        print(json.dumps(said), flush=True)
        signal.alarm(0)


def _taken() -> int:
    """Bytes of address space that this process has; 0 where the system does not say."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _bound(size: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # where the system knows no such bound
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))


if __name__ == "__main__":
    main()
