"""What an experiment looks at: the visitor's run, or the one of an example where that cannot show it."""

from dataclasses import dataclass, replace

from model.nn.intervention import Intervention
from model.serving.engine import Request
from viz.state.link import View
from viz.state.look import Look, loaded
from viz.state.presets import SentenceExample
from viz.state.session import current


@dataclass(frozen=True)
class TriedRun(Look):
    """A run, with the view that says which head and cell of it are looked at; None: the visitor's own."""

    of_example: View | None = None

    @property
    def view(self) -> View:
        return self.of_example or current()

    @property
    def place(self) -> str:
        return self.view.place

    @property
    def head(self) -> int:
        return min(self.view.head, self.attention.heads - 1)

    @property
    def cell(self) -> tuple[int, int]:
        """(query, key)."""
        return self.view.cell


def seen(look: Look) -> TriedRun:
    """The visitor's own run."""
    return TriedRun(look.request)


def seen_in(example: SentenceExample) -> TriedRun:
    """The unchanged run of an example."""
    view = replace(example.view, intervention=Intervention(), show="")
    return TriedRun(Request(loaded(view.model).address, view.text), view)
