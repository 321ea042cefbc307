"""Whose training is looked at, on which text, in which head: chosen on the page and kept in the link."""

import random
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache

import streamlit as st

from model.nn.places import head_label
from model.serving.engine import Background
from model.training.checkpoints import (
    Archive,
    CheckpointTraces,
    TrainingRun,
    shipped_training_run,
    shipped_training_runs,
)
from model.training.induction import SYMBOLS
from model.training.training_file import RecordedTraining
from model.training.workshop import Workshop
from viz.elements.one_of import one_of
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import below_controls
from viz.state.engine import engine, is_present
from viz.state.link import View
from viz.state.presets import REPEATED
from viz.state.session import current
from viz.views.training.own_runs import called, choose_uploaded, open_record, own_runs

say = sentences_of("training.choice")

LIST = "k 3 f z a 5 q m b x k 3 f z a 5 q m b x"
TITLES = {
    "induction": "Induction",
    "stories": "Stories",
    "translate-en-fr": "Translator",
    "house-gpt": "House GPT",
}
TEXTS = {
    "induction": LIST,
    "stories": REPEATED,
    "translate-en-fr": say("black_cat_sleeps"),
}
ROLES = {
    "induction": "induction head",
    "previous_token": "previous-token head",
    "alignment": "aligns best",
}
HIGHEST = {  # of a training of the visitor's own, whose heads nobody has tried
    "induction": "highest induction",
    "previous_token": "highest previous token",
}
OTHER_TEXT = View.text
KEY = "training"  # of the choice, and of the link's parameter
HERE = "induction"  # the model that a visitor can train, and whose training is shown first
SAID_TWICE = 10  # symbols of a random list
CHARACTERS = 500  # of the text: it stands in the link, whose room it shares with the sentence


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """A training, a text read along it, and one head."""

    title: str  # of the training
    training_run: TrainingRun
    traces: CheckpointTraces
    place: str
    head: int
    record: RecordedTraining | None = None  # of a training of the visitor's own
    probe: int = 0  # which of its texts

    @property
    def name(self) -> str:
        return head_label((self.place, self.head))


@cache
def archive() -> Archive:
    """The checkpoints of this process, shared by all visitors."""

    def turn() -> AbstractContextManager[None]:
        return engine().turn()

    return Archive(turn=turn)


@cache
def workshop() -> Workshop:
    def turn(visitor: Hashable) -> AbstractContextManager[None]:
        return engine().turn(background=Background(visitor))

    return Workshop(turn=turn, present=is_present)


_HERE = "training-here-open"  # session state


def trains_here() -> bool:
    """Whether the page shows the run of the visitor's own."""
    return bool(st.session_state.get(_HERE))


def offer_training() -> None:
    """The button that opens the controls of a training here, and the one that leads back."""
    label, opens = ("← Recorded trainings", False) if trains_here() else ("Train one here", True)
    st.button(label, key="training-open", on_click=_open_here, args=(opens,))


def _open_here(opens: bool) -> None:
    st.session_state[_HERE] = opens


def choose_training(
    side: str = "", *, first: str = "", shuffles: bool = True
) -> TrainedHead | None:
    """What the visitor chooses; None where a sentence on the page says why it cannot be read.

    side: what the keys of its widgets end with, where two are chosen. first: the training that is chosen
    until another one is. shuffles: whether a button draws another list of symbols.
    """
    shipped, own = shipped_training_runs(), own_runs()
    names = [name for name in dict.fromkeys([*TITLES, *shipped]) if name in shipped]
    titles = TITLES | {
        name: plain(called(name)) for name in own
    }  # what the widget keeps holds no record
    chosen = f"{KEY}{side}"
    if not side:
        choose_uploaded(chosen)
    name = one_of(
        say("training_right") if side else "Training of",
        [*names, *own],
        chosen,
        default=first if first in names else names[0],
        named=lambda one: titles.get(one, one),
        quiet=not side,
        bind="query-params",
    )
    if not side:
        open_record(chosen)
    if name in own:
        return _of_record(name, own[name], side)
    view = current()
    text, at = TEXTS.get(name, OTHER_TEXT), None
    if view.model == name:  # the visitor's own
        text, at = view.text, (view.place, view.head)
    text = text_box(f"training-text-{name}" + side, text, listed=name == HERE, shuffles=shuffles)
    training_run = shipped_training_run(name)
    with below_controls():
        traces = read(training_run, text)
    if traces is None:
        return None
    key = f"training-head-{name}{side}"
    place, number = choose_head(key, training_run, traces, first=at)
    return TrainedHead(TITLES.get(name, name), training_run, traces, place, number)


def _of_record(name: str, record: RecordedTraining, side: str) -> TrainedHead:
    """A head of a training of the visitor's own, on one of its probe texts."""
    short, probe = name[-8:], 0
    if len(record.probes) > 1:
        texts = [f"{at}: {_shortened(one.text)}" for at, one in enumerate(record.probes, 1)]
        key = f"training-probe-{short}{side}"
        probe = texts.index(st.selectbox("Probe text", texts, key=key, bind="query-params"))
    training_run, traces = record.training_run(name, probe), record.traces(probe)
    key = f"training-head-{short}{side}"
    place, head = choose_head(key, training_run, traces, first=None, roles=HIGHEST)
    return TrainedHead(called(name), training_run, traces, place, head, record, probe)


def _shortened(text: str) -> str:
    """The beginning of a text, in a list."""
    return " ".join(map(token_label, text[:60].split()))


def text_box(key: str, default: str, *, listed: bool, shuffles: bool = True) -> str:
    """The text to read; for the model of symbols also a button for another list, where it `shuffles`."""
    label, help = ("List", "Symbols: a–z and 1–6.") if listed else ("Text", None)
    text = st.text_input(
        label, default, max_chars=CHARACTERS, key=key, bind="query-params", help=help
    )
    if listed and shuffles:
        st.button(
            "Shuffle",
            key=f"{key}-shuffle",
            on_click=_shuffle,
            args=(key,),
            help=say("draws_another_random"),
        )
    return text


def read(training_run: TrainingRun, text: str) -> CheckpointTraces | None:
    """The text at every checkpoint, or None after a sentence that says why not."""
    try:
        with st.spinner("Reading the checkpoints"):
            return archive().traces(training_run, text)
    except ValueError as refusal:
        st.error(plain(str(refusal)))
        return None


def choose_head(
    key: str,
    training_run: TrainingRun,
    traces: CheckpointTraces,
    *,
    first: tuple[str, int] | None,
    roles: Mapping[str, str] = ROLES,
) -> tuple[str, int]:
    """A sub-layer and head: those that were found to do something come first. roles: what is said of them."""
    every = [
        (attention.name, head)
        for attention in traces.last.attention.values()
        for head in range(attention.heads)
    ]
    found = {training_run.head(what): f", {roles.get(what, what)}" for what in training_run.heads}
    heads = {head_label(one): one for one in [*found, *every] if one in every}
    names = list(heads)
    chosen = st.selectbox(
        "Head",
        names,
        index=names.index(head_label(first)) if first and first in every else 0,
        format_func=lambda name: f"{name}{found.get(heads[name], '')}",
        key=key,
        bind="query-params",
    )
    return heads[chosen]


def _shuffle(key: str) -> None:
    drawn = random.sample(SYMBOLS, SAID_TWICE)
    st.session_state[key] = " ".join((*drawn, *drawn))
