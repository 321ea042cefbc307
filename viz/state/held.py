"""What one run of a page holds until it ends: the models and traces that it has asked for.

Pages hold names and requests. What they read by them comes from here, so a run asks the engine once for
each, even for a trace that is too large to be kept. Between two runs only the engine keeps anything.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.download.wheel import Progress
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.state.dropped_files import is_ours, require_ours
from viz.state.engine import engine
from viz.state.page_runs import page_runs

if TYPE_CHECKING:
    from model.run.model import Model


class _Thread(threading.local):
    """The run that this thread draws. What it holds goes with the thread, or with the next run in it."""

    run: object = None
    held: dict[str | Request, Any]
    passing: dict[str | Request, Any]  # one trace at most


_thread = _Thread()


def loaded(name: str, progress: Progress = lambda sentence, share: None) -> "Model":
    """The model of this name, loaded now if it is not yet. Raises ValueError as `load_model` does."""
    require_ours(name)
    held, _ = _stores()
    if name not in held:
        held[name] = engine().model(name, progress)
    model: Model = held[name]
    return model


def is_loaded(name: str) -> bool:
    """Whether a model is loaded and this session may read it, so that no waiting is needed."""
    return is_ours(name) and engine().has(name)


def traced(
    request: Request,
    waiting: Callable[[int], object] = lambda place: None,
    *,
    passing: bool = False,
) -> Trace:
    """The trace of a request: one pass at most in a run of a page, and none where the engine has it.

    waiting: is told the place in the queue. passing: one of many that are read one after the other, of which
    only the last is held.
    Raises ValueError as `Model.trace` does.
    """

    def told(place: int) -> None:
        page_runs.give_up()
        waiting(place)

    require_ours(request.model)
    held, passed = _stores()
    trace: Trace = held.get(request) or passed.get(request) or engine().trace(request, told)
    if passing:
        passed.clear()
    (passed if passing else held)[request] = trace
    return trace


def _stores() -> tuple[dict[str | Request, Any], dict[str | Request, Any]]:
    """What the run of this thread holds; nothing is held in a thread that draws no page."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return {}, {}
    if context.cursors is not _thread.run:  # made anew for each run
        _thread.run, _thread.held, _thread.passing = context.cursors, {}, {}
    return _thread.held, _thread.passing
