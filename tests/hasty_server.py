"""`python -m tests.hasty_server [SECONDS]` starts the app as `python -m viz.server` does, with less patience
for who sends half a request or reads nothing, and a pass over the word "forever" that never ends."""

import runpy
import sys
import threading

from model.run.model import Model
from model.trace.trace import Trace
from viz.server import connections

FOREVER = "forever"


def never_end() -> None:
    """A pass over a sentence with the word waits and waits."""
    real = Model.trace

    def trace(model: Model, text: str, *rest: object, **more: object) -> Trace:
        if FOREVER in text:
            threading.Event().wait()
        return real(model, text, *rest, **more)  # type: ignore[arg-type]

    Model.trace = trace  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    connections.HEAD_SECONDS = connections.STILL_SECONDS = float(sys.argv.pop(1))
    never_end()
    runpy.run_module("viz.server", run_name="__main__", alter_sys=True)
