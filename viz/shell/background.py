"""Many passes in the background of a page, shared by all visitors: with progress, a way to stop, and turns
that leave room for other visitors' passes."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st

from model.serving.engine import Background
from model.system.jobs import Job, Jobs
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import below_controls, hold_place
from viz.state.engine import engine, visitor
from viz.state.quota import page_runs

say = sentences_of("shell.background")

KEPT = 64  # runs and their results
AT_FIRST, SECONDS = 0.7, 0.5  # seconds to wait before progress is shown, and between two looks
UNASKED = 1e11  # passes × tokens × weights that are run without asking: a few seconds


class Found(Protocol):
    """The results so far."""

    @property
    def done(self) -> int:
        """Passes so far."""
        ...

    @property
    def total(self) -> int:
        """Passes in all."""
        ...


F = TypeVar("F", bound=Found)
K = TypeVar("K", bound=Hashable)


class Passes(Job, Generic[F]):
    """Passes under way or ended. They go on while someone looks at them."""

    patience = 20.0
    found: F | None = None  # what is known so far
    ahead = 0  # how many wait for the model before it

    @property
    def complete(self) -> bool:
        """Whether every pass is done."""
        return self.found is not None and self.found.done == self.found.total

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn in the queue for the model, for one batch."""

        def in_queue(ahead: int) -> None:
            self.ahead = ahead

        with engine().turn(in_queue, Background(self.visitor, self.still_wanted)):
            self.ahead = 0
            yield


class PassesOf(Jobs[K, Passes[F]]):
    """At most one run for a key. The last `kept` runs stay with their results."""

    def __init__(self, kept: int = KEPT) -> None:
        super().__init__(kept)

    def started(
        self, key: K, work: Callable[[Passes[F]], Iterator[F]], visitor: Hashable = None
    ) -> Passes[F]:
        """The run of a key: the one that is complete or under way, else a new one of the visitor's."""

        def go(run: Passes[F]) -> None:
            for found in work(run):
                run.found = found
                run.still_wanted()

        return self.start(key, Passes(visitor), go)


@dataclass(frozen=True)
class Offer:
    """The texts and sizes with which passes are offered, and shown while they run."""

    name: str  # what the keys of the controls begin with
    said: str
    start: str  # on the button
    unit: str  # "heads"
    doing: str  # "left out"
    total: int  # passes
    work: float  # passes × tokens × weights


@st.cache_resource
def shared_passes() -> PassesOf[Hashable, Any]:
    """The passes of this process, shared by all visitors. A key begins with the name of its passes."""
    return PassesOf()


def passes_or_offer(
    key: Hashable,
    work: Callable[[Passes[F]], Iterator[F]],
    offer: Offer,
    draw: Callable[[Passes[F]], object] | None = None,
) -> Passes[F] | None:
    """Runs the passes below the controls of a view, with progress and a way to stop; asks first where that
    takes long. draw: shows what is known so far, under the progress; without it the place of the picture is
    held."""
    with below_controls():
        return _run_or_offer(key, work, offer, draw)


def _run_or_offer(
    key: Hashable,
    work: Callable[[Passes[F]], Iterator[F]],
    offer: Offer,
    draw: Callable[[Passes[F]], object] | None,
) -> Passes[F] | None:
    runs, state = shared_passes(), st.session_state
    run = runs.known(key)
    if run is not None and run.complete:
        return run
    wanted = state.get(f"{offer.name}-wanted") == key
    if is_stopped(offer, key) or not (wanted or offer.work < UNASKED):
        done = 0 if run is None or run.found is None else run.found.done
        st.markdown(offer.said + (f" Stopped after {done} {offer.unit}." if done else ""))
        st.button(
            "Start over" if done else offer.start,
            type="primary",
            on_click=_set,
            args=(offer.name, key, None),
            key=f"{offer.name}-start",
        )
        return run
    run = runs.started(key, work, visitor())
    page_runs.give_up()
    if not run.ended.wait(AT_FIRST):
        _under_way(run, key, offer, draw)
        if run.complete:  # meanwhile: what was under way would stand beside the result
            st.rerun()
        if draw is None:
            hold_place()
    if run.refusal:
        st.error(plain(run.refusal))
    return run


def is_stopped(offer: Offer, key: Hashable) -> bool:
    """Whether this visitor has stopped the run. It ends when nobody else looks at it."""
    return bool(st.session_state.get(f"{offer.name}-stopped") == key)


@st.fragment(run_every=SECONDS)
def _under_way(
    run: Passes[F], key: Hashable, offer: Offer, draw: Callable[[Passes[F]], object] | None
) -> None:
    """The progress of the run, with a button to stop: a run that nobody looks at ends."""
    if run.ended.is_set() or is_stopped(offer, key):
        st.rerun()
    run.look()
    done = 0 if run.found is None else run.found.done
    line = say("queue_model_place", ahead=run.ahead) if run.ahead else ""
    bar, stop = st.columns([6, 1], vertical_alignment="center")
    said = f"{done} of {offer.total} {offer.unit} {offer.doing}."
    bar.progress(done / offer.total, text=said + line)
    stop.button("Stop", key=f"{offer.name}-stop", on_click=_set, args=(offer.name, None, key))
    if draw is not None:
        draw(run)


def _set(name: str, wanted: Hashable, stopped: Hashable) -> None:
    st.session_state.update({f"{name}-wanted": wanted, f"{name}-stopped": stopped})
