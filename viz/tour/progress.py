"""Where a visitor stands in the tour: kept in the session, and told in the link as `tour=scaling`.

A tour that was left keeps its step, as `tour=scaling.left`, so that it can be resumed.
"""

from dataclasses import dataclass, replace

import streamlit as st

from viz import address
from viz.session import current, kept_view, open_view
from viz.tour.steps import NAMES, STEPS, Moment, Step, on_tour_sentence, opened
from viz.view import View

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

    @property
    def step(self) -> Step | None:
        """The step; None at the end."""
        return STEPS[self.number] if self.number < len(STEPS) else None

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
    written, known = address.read(_NAMES), progress()
    found = read(written.get(PARAMETER, ""))
    late = address.knows(PARAMETER, written) and not address.came_back()
    if found is not None and not late and (known is None or known.link != found.link):
        known = replace(found, done=known.done if known else frozenset())
        keep(known)
    address.write(PARAMETER, {} if known is None else {PARAMETER: known.link}, _NAMES)


def go(number: int, *, tour_sentence: bool = False) -> None:
    """Opens a step, or the end of the tour; the page moves there."""
    known = progress() or Progress()
    if number >= len(STEPS):
        keep(replace(known, number=len(STEPS), under_way=True, before=None))
        return
    step, view = STEPS[number], kept_view() or current()
    view = on_tour_sentence(step, view) if tour_sentence else opened(step, view)
    open_view(view)
    keep(replace(known, number=number, under_way=True, before=view, moving=True))


def start() -> None:
    """The first step, with nothing done."""
    keep(Progress())
    go(0)


def resume() -> None:
    """The step at which the tour was left."""
    known = progress() or Progress()
    go(known.number)


def leave() -> None:
    """Puts the tour away; the step is kept."""
    known = progress()
    if known is not None:
        keep(replace(known, under_way=False))


def arrived() -> None:
    """The page of the step is open."""
    known = progress()
    if known is not None and known.moving:
        keep(replace(known, moving=False))


def note(moment_of: "Moment") -> bool:
    """Marks the step as done if it is by now; says whether it has just become so.

    Where another sentence or model was chosen, what was before is taken anew.
    """
    known = progress()
    if known is None or known.step is None or known.step.name in known.done:
        return False
    if known.step.done(moment_of):
        keep(replace(known, done=known.done | {known.step.name}))
        return True
    before, view = moment_of.before, moment_of.view
    if (before.text, before.model) != (view.text, view.model):
        keep(replace(known, before=view))
    return False
