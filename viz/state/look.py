"""What a page looks at: a run of the model, read through one request, and what that run holds until it
ends."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from model.download.wheel import Progress
from model.loading.registry import models
from model.nn.intervention import UNCHANGED
from model.serving.engine import Request
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.state.engine import engine
from viz.state.locality import held_by_this_run
from viz.state.quota import page_runs
from viz.state.session import current, is_ours, require_ours

if TYPE_CHECKING:
    from model.run.model import Model


# What one run of a page holds until it ends: the models and traces that it has asked for.
# Pages hold names and requests. What they read by them comes from here, so a run asks the engine once for
# each, even for a trace that is too large to be kept. Between two runs only the engine keeps anything.


_PASSING = ("passing",)  # the key of the one trace that is not held: no name of a model


def loaded(name: str, progress: Progress = lambda sentence, share: None) -> "Model":
    """The model of this name, loaded now if it is not yet. Raises ValueError as `load_model` does."""
    held = held_by_this_run()
    if name not in held:
        require_ours(name)
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

    held = held_by_this_run()
    trace: Trace | None = held.get(request) or held.get(_PASSING, {}).get(request)
    if trace is None:
        require_ours(request.model)
        trace = engine().trace(request, told)
    if passing:
        held[_PASSING] = {request: trace}
    else:
        held[request] = trace
    return trace


@dataclass(frozen=True)
class Look:
    """What the visitor looks at: a run of the model, and the unchanged run where it is changed.

    An open page keeps it, so it holds a request. Each run of the page holds the model and the traces.
    """

    request: Request

    @property
    def run(self) -> str:
        """A name of the run that the browser knows it by; equal requests have one name."""
        return f"{hash(self.request):x}"

    @property
    def model(self) -> "Model":
        model, languages = loaded(self.request.model), self.request.languages
        return model.translating(*languages) if languages else model

    @property
    def title(self) -> str:
        """What the model is called in a sentence."""
        return models.short_title(self.request.model)

    @property
    def place(self) -> str:
        """Name of the chosen attention sub-layer."""
        return current().place

    @property
    def trace(self) -> Trace:
        return traced(self.request)

    @property
    def attention(self) -> Attention:
        """The chosen layer's attention, of the run as it is shown."""
        return self.trace.find(self.place)

    @property
    def has_output(self) -> bool:
        """Whether the model's W_O is there. A recorded run has none."""
        return "output" not in self.model.unproven

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """The texts of the tokens that look, and of those looked at."""
        return labels_of(self.trace, self.attention)

    @property
    def head(self) -> int:
        """The chosen head, within this layer's."""
        return min(current().head, self.attention.heads - 1)

    @property
    def requests(self) -> tuple[Request, ...]:
        """The run that is shown and, where it is changed, the unchanged one."""
        if not self.request.intervention.changes:
            return (self.request,)
        return self.request, replace(self.request, intervention=UNCHANGED)

    @property
    def baseline(self) -> Trace | None:
        """The unchanged run; None if nothing is changed."""
        return None if len(self.requests) == 1 else traced(self.requests[1])


def labels_of(trace: Trace, attention: Attention) -> tuple[list[str], list[str]]:
    """The texts of the tokens that look in a layer, and of those looked at."""
    return (
        [token.text for token in trace.queries_of(attention)],
        [token.text for token in trace.keys_of(attention)],
    )
