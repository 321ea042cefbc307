"""The app with a standard output that has no room: `python -m tests.faults.full_output`."""

import os
import runpy

if __name__ == "__main__":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    runpy.run_module("viz.server", run_name="__main__")
