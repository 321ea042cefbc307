"""What a page looks at: a run of the model, read through one request."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from model.loading.registry import models
from model.nn.intervention import Intervention
from model.serving.engine import Request
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.state.held import loaded, traced
from viz.state.session import current

if TYPE_CHECKING:
    from model.run.model import Model


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
        return self.request, replace(self.request, intervention=Intervention())

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
