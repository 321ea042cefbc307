"""What one run of a page holds until it ends: the models and traces that it has asked for.

Pages hold names and requests. What they read by them comes from here, so a run asks the engine once for
each, even for a trace that is too large to be kept; between two runs only the engine keeps anything.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.download.wheel import Progress
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.state.engine import engine

if TYPE_CHECKING:
    from model.run.model import Model


class _Held(threading.local):
    """What the run that this thread draws has asked for. It goes with the thread, or with the next run
    in it."""

    def __init__(self) -> None:
        self.run: object = None
        self.models: dict[str, Model] = {}
        self.traces: dict[Request, Trace] = {}
        self.passing: dict[Request, Trace] = {}  # one at most

    def begin(self) -> bool:
        """Forgets what an earlier run has asked for; says whether this thread draws a page at all."""
        context = get_script_run_ctx(suppress_warning=True)
        if context is None:
            return False
        run = context.cursors  # made anew for each run
        if run is not self.run:
            self.run, self.models, self.traces, self.passing = run, {}, {}, {}
        return True


_held = _Held()


def loaded(name: str, progress: Progress = lambda sentence, share: None) -> "Model":
    """The model of this name, loaded now if it is not yet. Raises ValueError as `load_model` does."""
    if not _held.begin():
        return engine().model(name, progress)
    if name not in _held.models:
        _held.models[name] = engine().model(name, progress)
    return _held.models[name]


def traced(
    request: Request,
    waiting: Callable[[int], object] = lambda place: None,
    *,
    passing: bool = False,
) -> Trace:
    """The trace of a request: one pass at most in a run of a page, and none where the engine has it.

    waiting: is told the place in line. passing: one of many that are read one after the other, of which
    only the last is held.
    Raises ValueError as `Model.trace` does.
    """
    if not _held.begin():
        return engine().trace(request, waiting)
    trace = _held.traces.get(request) or _held.passing.get(request)
    if trace is None:
        trace = engine().trace(request, waiting)
    if passing:
        _held.passing = {request: trace}
    else:
        _held.traces[request] = trace
    return trace
