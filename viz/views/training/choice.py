"""Whose training is looked at, on which text, in which head: chosen on the page and kept in the link."""

import random
from dataclasses import dataclass

import streamlit as st

from model.training.checkpoints import Course, Film, shipped_course, shipped_courses
from model.training.induction import SYMBOLS
from viz.notation.markdown import plain
from viz.state.session import current
from viz.views.training.film.message import head_name
from viz.views.training.shared import archive

LIST = "k 3 f z a 5 q m b x k 3 f z a 5 q m b x"
TITLES = {
    "induction": "Induction",
    "stories": "Stories",
    "translate-en-fr": "Translator",
    "house-gpt": "House GPT",
}
TEXTS = {
    "induction": LIST,
    "stories": "cat dog mat hat cup cat dog mat hat cup cat",
    "translate-en-fr": "the black cat sleeps",
}
ROLES = {
    "induction": "induction head",
    "previous_token": "previous-token head",
    "alignment": "aligns best",
}
OTHER_TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
SAID_TWICE = 10  # symbols of a random list
CHARACTERS = 500  # of the text: it stands in the link, whose room it shares with the sentence


@dataclass(frozen=True, eq=False)
class Seen:
    """A training, a text read along it, and one head."""

    course: Course
    film: Film
    place: str
    head: int

    @property
    def name(self) -> str:
        return head_name(self.place, self.head)


def seen_training() -> Seen | None:
    """What the visitor chose; None where a sentence on the page says why it cannot be read."""
    which, box, head = st.columns([9, 10, 8], vertical_alignment="bottom")
    with which:
        names = ordered(shipped_courses())
        name = st.segmented_control(
            "Whose training",
            names,
            default=names[0],
            required=True,
            format_func=lambda one: TITLES.get(one, one),
            key="training",
            bind="query-params",
        )
    with box:
        text = text_box(f"training-text-{name}", own_text(name), listed=name == "induction")
    course = shipped_course(name)
    film = read(course, text)
    if film is None:
        return None
    with head:
        place, number = choose_head(f"training-head-{name}", course, film, first=own_head(name))
    return Seen(course, film, place, number)


def ordered(names: tuple[str, ...]) -> list[str]:
    """The trainings in the order of their titles, then the others."""
    return [*(name for name in TITLES if name in names), *(n for n in names if n not in TITLES)]


def own_text(name: str) -> str:
    """The visitor's own sentence where it is one of this model, else a text that shows something."""
    return current().text if current().model == name else TEXTS.get(name, OTHER_TEXT)


def own_head(name: str) -> tuple[str, int] | None:
    """The visitor's own layer and head where they are of this model."""
    return (current().place, current().head) if current().model == name else None


def text_box(key: str, default: str, *, listed: bool) -> str:
    """The text to read; for the model of symbols also a button for another list."""
    if not listed:
        return st.text_input(
            "Its text", default, max_chars=CHARACTERS, key=key, bind="query-params"
        )
    box, button = st.columns([3, 1], vertical_alignment="bottom")
    with button:
        st.button(
            "Shuffle", key=f"{key}-shuffle", on_click=_shuffle, args=(key,), width="stretch",
            help="Another random list, said twice.",
        )  # fmt: skip
    return box.text_input(
        "Its list: symbols a–z and 1–6",
        default,
        max_chars=CHARACTERS,
        key=key,
        bind="query-params",
    )


def read(course: Course, text: str) -> Film | None:
    """The text at every checkpoint, or None after a sentence that says why not."""
    try:
        with st.spinner("Reading the checkpoints"):
            return archive().film(course, text)
    except ValueError as refusal:
        st.error(plain(str(refusal)))
        return None


def choose_head(
    key: str, course: Course, film: Film, *, first: tuple[str, int] | None = None
) -> tuple[str, int]:
    """A sub-layer and head: those that were found to do something come first."""
    every = [
        (attention.name, head)
        for attention in film.last.attention.values()
        for head in range(attention.heads)
    ]
    found = {course.found(what): ROLES.get(what, what) for what in course.heads}
    options = dict.fromkeys(head_name(*one) for one in (*found, *every) if one in every)
    of_name = {head_name(*one): one for one in every}
    roles = {head_name(*one): f", {role}" for one, role in found.items()}
    wanted = head_name(*first) if first in every else next(iter(options))
    chosen = st.selectbox(
        "Head",
        list(options),
        index=list(options).index(wanted),
        format_func=lambda name: f"{name}{roles.get(name, '')}",
        key=key,
        bind="query-params",
    )
    return of_name[chosen]


def _shuffle(key: str) -> None:
    drawn = random.sample(SYMBOLS, SAID_TWICE)
    st.session_state[key] = " ".join((*drawn, *drawn))
