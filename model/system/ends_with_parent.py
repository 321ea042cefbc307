"""Runs a Python file, or a module, in a process that ends with the one that started it, however that ends, on
Linux. It imports nothing of this project.

`python -P ends_with_parent.py PARENT FILE ARGUMENTS…` or `… PARENT -m MODULE ARGUMENTS…`
"""

import ctypes
import os
import runpy
import signal
import sys

END_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG


def main() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):  # it has ended already
            return
    del sys.argv[:2]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
