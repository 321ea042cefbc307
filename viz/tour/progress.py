"""Where a visitor stands in the tour: kept in the session, and written into the link as `tour=scaling`.

Who leaves the tour keeps the step, as `tour=scaling.left`, and can resume there.
"""

from dataclasses import dataclass, replace

import streamlit as st

from model.nn.intervention import Intervention
from viz.notation.names import listed
from viz.state import url
from viz.state.intervention_words import parts
from viz.state.link import View
from viz.state.session import current, kept_view, open_view, set_intervention
from viz.state.way_back import came_back
from viz.tour.steps import NAMES, TOUR_STEPS, TourStep, on_tour_sentence, opened

PARAMETER = "tour"
_NAMES = {PARAMETER}
_PROGRESS = "tour"
_FINISH, _LEFT = "finish", ".left"


@dataclass(frozen=True)
class TourState:
    """number: of the step, from 0; as many as there are steps: finished."""

    number: int = 0
    started: bool = True
    under_way: bool = True
    done: frozenset[str] = frozenset()  # names of steps
    before: View | None = None  # when the step was opened; None: the first one that is drawn
    moving: bool = False  # to the step's page
    taken_back: str = ""  # the changes that opening the step took back, in words

    @property
    def step(self) -> TourStep | None:
        """The step; None at the end."""
        return TOUR_STEPS[self.number] if self.number < len(TOUR_STEPS) else None

    @property
    def is_done(self) -> bool:
        """Whether the step was done once, whatever the reader did afterwards."""
        return self.step is not None and self.step.name in self.done

    @property
    def link(self) -> str:
        """What the link says; nothing before the tour."""
        if not self.started:
            return ""
        name = _FINISH if self.step is None else self.step.name
        return name if self.under_way else name + _LEFT


def read(written: str) -> TourState | None:
    """What a link says; None where it names no step."""
    name = written.removesuffix(_LEFT)
    number = len(TOUR_STEPS) if name == _FINISH else NAMES.index(name) if name in NAMES else None
    return None if number is None else TourState(number, under_way=name == written)


def progress() -> TourState:
    """Where this visitor stands."""
    known: TourState = st.session_state.get(_PROGRESS, TourState(started=False, under_way=False))
    return known


def _keep(known: TourState) -> None:
    st.session_state[_PROGRESS] = known


def adopt() -> None:
    """Takes the step from a link that was opened, then lets the link say where the tour stands."""
    written, known = url.read(_NAMES), progress()
    linked = read(written.get(PARAMETER, ""))
    late = url.knows(PARAMETER, written) and not came_back()
    if linked is not None and not late and known.link != linked.link:
        known = replace(linked, done=known.done)
        _keep(known)
    url.write(PARAMETER, {PARAMETER: known.link} if known.started else {}, _NAMES)


def go(number: int, *, tour_sentence: bool = False) -> None:
    """Opens a step, or the end of the tour, and its page. Takes back what was changed."""
    view = kept_view() or current()
    taken_back = listed([part.words for part in parts(view.intervention)])
    known = replace(progress(), number=number, started=True, under_way=True, taken_back=taken_back)
    if number >= len(TOUR_STEPS):
        set_intervention(Intervention())
        _keep(replace(known, number=len(TOUR_STEPS), before=None, moving=True))
        return
    step = TOUR_STEPS[number]
    view = on_tour_sentence(step, view) if tour_sentence else opened(step, view)
    open_view(view)
    _keep(replace(known, before=view, moving=True))


def start() -> None:
    """Opens the first step, with nothing done."""
    _keep(TourState())
    go(0)


def resume() -> None:
    """Opens the step at which the tour was left."""
    go(progress().number)


def leave() -> None:
    """Closes the tour: keeps the step, and takes back what it had the reader change."""
    known = progress()
    _keep(replace(known, under_way=False))
    if known.step is not None and known.step.changes:
        set_intervention(Intervention())


def arrived() -> None:
    """The page of the step is open."""
    _keep(replace(progress(), moving=False))


def compared_with(view: View) -> View:
    """The view that the step was opened on. Another sentence or model starts the step again, from there."""
    known = progress()
    before = known.before
    if before is None or (before.text, before.model) != (view.text, view.model):
        before = view
        _keep(replace(known, before=before))
    return before


def mark_done() -> None:
    """The step is done."""
    known = progress()
    if known.step is not None:
        _keep(replace(known, done=known.done | {known.step.name}))
