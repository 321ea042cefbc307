"""`python -m tests.planted_server` starts the app with two faults planted, each waiting for its word.

A text with `breaks` makes an error of ours that quotes the text; one with `lingers` a pass that never ends
by itself, as one of a very large model would. The file `LINGERING` gets a line when such a pass begins.
"""

import os
import runpy
import time
from typing import Any

from model import Trace
from model.run.model import Model
from model.system import deadline

_trace = Model.trace


def planted(self: Model, text: str, *given: Any, **more: Any) -> Trace:
    if "breaks" in text:
        raise RuntimeError(f"could not read {text}") from KeyError(text)
    if "lingers" in text:
        with open(os.environ["LINGERING"], "a") as file:
            file.write("begun\n")
    while "lingers" in text:
        time.sleep(0.01)
        deadline.look()
    return _trace(self, text, *given, **more)


if __name__ == "__main__":
    Model.trace = planted  # type: ignore[method-assign]
    runpy.run_module("viz.server", run_name="__main__", alter_sys=True)
