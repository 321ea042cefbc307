"""Where a visitor stands in the tour: kept in the session, and told in the link as `tour=scaling`.

A tour that was left keeps its step, as `tour=scaling.left`, so that it can be resumed.
"""

from dataclasses import dataclass, replace

import streamlit as st

from model.nn.intervention import Intervention
from viz.questions.question import listed
from viz.state import url
from viz.state.intervention_words import parts
from viz.state.session import current, kept_view, open_view, set_change
from viz.state.view import View
from viz.tour.steps import NAMES, STEPS, Step, on_tour_sentence, opened

PARAMETER = "tour"
_NAMES = {PARAMETER}
_PROGRESS = "tour"
_FINISH, _LEFT = "finish", ".left"


@dataclass(frozen=True)
class Progress:
    """number: of the step, from 0; as many as there are steps: finished."""

    number: int = 0
    under_way: bool = True
    done: frozenset[str] = frozenset()  # names of steps
    before: View | None = None  # when the step was opened; None: whatever is looked at first
    moving: bool = False  # to the step's page
    taken_back: str = ""  # what was changed before the step was opened, in words

    @property
    def step(self) -> Step | None:
        """The step; None at the end."""
        return STEPS[self.number] if self.number < len(STEPS) else None

    @property
    def is_done(self) -> bool:
        """Whether the step was done, whatever its reader did afterwards."""
        return self.step is not None and self.step.name in self.done

    @property
    def link(self) -> str:
        """What the link says."""
        name = _FINISH if self.step is None else self.step.name
        return name if self.under_way else name + _LEFT


def read(written: str) -> Progress | None:
    """What a link says; None where it names no step."""
    name = written.removesuffix(_LEFT)
    number = len(STEPS) if name == _FINISH else NAMES.index(name) if name in NAMES else None
    return None if number is None else Progress(number, under_way=name == written)


def progress() -> Progress | None:
    """Where this visitor stands; None before a tour."""
    known: Progress | None = st.session_state.get(_PROGRESS)
    return known


def keep(known: Progress) -> None:
    st.session_state[_PROGRESS] = known


def adopt() -> None:
    """Takes the step from a link that was opened, then lets the link say where the tour stands."""
    written, known = url.read(_NAMES), progress()
    found = read(written.get(PARAMETER, ""))
    late = url.knows(PARAMETER, written) and not url.came_back()
    if found is not None and not late and (known is None or known.link != found.link):
        known = replace(found, done=known.done if known else frozenset())
        keep(known)
    url.write(PARAMETER, {} if known is None else {PARAMETER: known.link}, _NAMES)


def go(number: int, *, tour_sentence: bool = False) -> None:
    """Opens a step, or the end of the tour; the page moves there. What was changed is taken back."""
    known, view = progress() or Progress(), kept_view() or current()
    taken_back = listed([part.words for part in parts(view.change)])
    known = replace(known, number=number, under_way=True, taken_back=taken_back)
    if number >= len(STEPS):
        set_change(Intervention())
        keep(replace(known, number=len(STEPS), before=None))
        return
    step = STEPS[number]
    view = on_tour_sentence(step, view) if tour_sentence else opened(step, view)
    open_view(view)
    keep(replace(known, before=view, moving=True))


def start() -> None:
    """The first step, with nothing done."""
    keep(Progress())
    go(0)


def resume() -> None:
    """The step at which the tour was left."""
    known = progress() or Progress()
    go(known.number)


def leave() -> None:
    """Puts the tour away; the step is kept, and what it had changed is taken back."""
    known = progress()
    if known is not None:
        keep(replace(known, under_way=False))
        if known.step is not None and known.step.changes:
            set_change(Intervention())


def arrived() -> None:
    """The page of the step is open."""
    known = progress()
    if known is not None and known.moving:
        keep(replace(known, moving=False))


def compared_with(view: View) -> View:
    """The view that the step was opened on. Another sentence or model starts it anew, from there."""
    known = progress()
    if known is None or known.step is None:
        return view
    before = known.before
    if before is None or (before.text, before.model) != (view.text, view.model):
        before = view
        keep(replace(known, before=before))
    return before


def mark_done() -> None:
    """The step is done."""
    known = progress()
    if known is not None and known.step is not None:
        keep(replace(known, done=known.done | {known.step.name}))
