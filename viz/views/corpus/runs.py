"""Profiles of visitors' own texts: made in the background, one at a time, and kept for who asked for them."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import streamlit as st

from model.loading.registry import models
from model.profile.corpus import cut
from model.profile.profile import Profile
from model.profile.run import WINDOW
from model.profile.shipped import profile_of
from model.profile.slices import weights_hash, window_by_window
from model.profile.sums import Sums
from model.profile.tables import About
from model.profile.window import heads_of_model
from model.system.fair_queue import FairQueue
from model.system.jobs import Jobs
from viz.shell.background import Passes
from viz.state.engine import engine, visitor
from viz.state.held import loaded

if TYPE_CHECKING:
    from model.run.model import Model

MOST = 200_000  # bytes of a text
KEPT = 8  # profiles, of all visitors together; one of 270 heads takes 14 MB
QUEUE_AT_MOST = 30
MEASURED = 3  # windows whose time the estimate is made from
_OWN = "corpus-own-runs"  # session state: titles -> keys of the visitor's own runs

Key = tuple[str | None, str]  # the session, and the plan's digest


@dataclass(frozen=True)
class Plan:
    """What a profile of a text will take: measured on its first windows."""

    model: str
    windows: tuple[str, ...]
    by_line: bool
    name: str
    tokens: int
    seconds: float  # of all windows, as long as nobody else uses this computer

    @property
    def digest(self) -> str:
        said = repr((self.model, self.windows, self.by_line))
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, eq=False)
class SoFar:
    """A profile that grows."""

    done: int  # windows
    total: int
    seconds: float  # of computing, without the waits for a turn
    profile: Profile


class ProfileRun(Passes[SoFar]):
    """A profile under way or ended."""

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first window is done."""
        if self.found is None:
            return None
        return self.found.seconds / self.found.done * (self.found.total - self.found.done)


@st.cache_resource
def runs() -> Jobs[Key, ProfileRun]:
    """The runs of this process. A key begins with its session, so nobody else finds a run."""
    return Jobs(KEPT, FairQueue(1, QUEUE_AT_MOST))


def window_of(model: "Model") -> int:
    """The most tokens of a window."""
    return min(WINDOW, model.config.n_ctx)


def plan_of(model: "Model", text: str, *, by_line: bool, name: str) -> Plan:
    """Cuts a text into windows and runs the first ones. Raises ValueError for what cannot be profiled."""
    if len(text.encode(errors="replace")) > MOST:
        raise ValueError(f"The text has more than {MOST:,} bytes. A longer one is for the command.")
    if not model.runs:
        raise ValueError("A recorded run cannot read another text. Choose a model.")
    most = window_of(model)
    pieces = text.splitlines() if by_line else [text]
    windows = tuple(window for piece in pieces for window in cut(model, piece, most))
    if not windows:
        raise ValueError("There is no text yet.")
    lengths = [len(model.tokens(window)) for window in windows]
    plan = Plan(model.address, windows, by_line, name, sum(lengths), 0.0)
    first = [*islice(_grown(plan, lambda: engine().turn(lambda place: None)), MEASURED)][-1]
    pace = first.seconds / sum(lengths[: first.done])
    return replace(plan, seconds=pace * plan.tokens)


def key_of(plan: Plan) -> Key:
    return visitor(), plan.digest


def start(plan: Plan) -> None:
    """Begins the visitor's run, or puts it in the queue. Raises QueueFullError."""

    def work(run: ProfileRun) -> None:
        for found in _grown(plan, run.turn):
            run.found = found
            run.still_wanted()

    runs().start(key_of(plan), ProfileRun(visitor()), work)


def _grown(plan: Plan, turn: Callable[[], AbstractContextManager[None]]) -> Iterator[SoFar]:
    """The profile after each window. Each window takes a turn of its own, so that others come in between."""
    model = loaded(plan.model)
    window = window_of(model)
    content = "\n".join(plan.windows).encode(errors="surrogatepass")
    corpus = hashlib.sha256(content).hexdigest()
    about = About(plan.model, weights_hash(model), corpus, plan.name, plan.by_line, window)
    grown, seconds = Profile(about, Sums.none(heads_of_model(model), window), {}), 0.0
    if shipped := profile_of(model):
        grown = replace(grown, asked=shipped.asked)  # labels are the model's, whatever the corpus
    made = window_by_window(model, plan.windows, about, turn=turn)
    for number, (of_window, sums, texts, took) in enumerate(made, 1):
        grown, seconds = grown + Profile(of_window, sums, texts), seconds + took
        yield SoFar(number, len(plan.windows), seconds, grown)


def note(plan: Plan) -> None:
    """Notes a run as one of this session's."""
    title = f"{plan.name} ({models.short_title(plan.model)})"
    known = {name: key for name, key in _noted().items() if name != title}
    st.session_state[_OWN] = known | {title: key_of(plan)}


def own_profiles() -> dict[str, Profile]:
    """By title, those of this session that are still kept and have a window at least."""
    found = {title: runs().known(key) for title, key in _noted().items()}
    return {
        title: run.found.profile
        for title, run in found.items()
        if run is not None and run.found is not None and run.ended.is_set()
    }


def title_of(plan: Plan) -> str | None:
    """The title under which a plan's profile is offered."""
    return next((title for title, key in _noted().items() if key == key_of(plan)), None)


def _noted() -> dict[str, Key]:
    noted: dict[str, Key] = st.session_state.get(_OWN, {})
    return noted
