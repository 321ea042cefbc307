"""Sentences to start from, each with the head to open and what to look for.

They stand in examples.toml. Whatever an example says is computed on its model in
`tests/viz/state/test_examples.py`: the largest cell of the row, the line beside the diagonal row by row, the
column, and what the model writes next.
"""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from model.nn.intervention import Intervention
from model.nn.places import Head
from viz.state.view import View


@dataclass(frozen=True)
class SentenceExample:
    """A view worth opening, and what is to be seen there.

    without: the heads that are left out to show what they are needed for.
    """

    title: str
    view: View
    look_for: str
    without: frozenset[Head] = field(default=frozenset(), kw_only=True)

    @property
    def left_out(self) -> View:
        """The view without these heads."""
        return replace(self.view, intervention=Intervention(ablated=self.without))


def view_of(
    model: str,
    text: str,
    head: Head,
    cell: tuple[int, int],
    show: str = "",
    intervention: Intervention = Intervention(),
) -> View:
    """The view of one head's cell. cell: (query, key), the largest of its row."""
    (place, number), (query, key) = head, cell
    return View(
        text, model, place, number, query=query, key=key, show=show, intervention=intervention
    )


def _written() -> tuple[SentenceExample, ...]:
    data = tomllib.loads(Path(__file__).with_name("examples.toml").read_text(encoding="utf-8"))
    return tuple(
        SentenceExample(
            one.pop("title"),
            look_for=one.pop("look_for"),
            without=frozenset((place, head) for place, head in one.pop("without", ())),
            view=view_of(**one),
        )
        for one in data["example"]
    )


def example_claim(view: View) -> str | None:
    """What is to be seen in a view, where its head is that of an example."""
    shown = _head_of(view)
    return next((one.look_for for one in EXAMPLES if _head_of(one.view) == shown), None)


def _head_of(view: View) -> tuple[str, str, str, int]:
    return view.text, view.model, view.place, view.head


EXAMPLES = _written()
FIRST = EXAMPLES[0].view  # what a visitor sees who comes without a link
