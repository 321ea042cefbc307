"""Cards that open an example: its head in small, its sentence, and what to look for."""

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import streamlit as st

from model.analysis.heads.ranking import STATISTICS, Statistic, scores
from model.analysis.heads.statistics import families
from model.loading.registry import may_be_linked, models
from model.nn.config import Shape
from model.nn.places import Head, head_label
from model.profile.shipped import shipped_profile
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.figures.svg import rows_of, thumbnail
from viz.notation.head_labels import labels_by_head
from viz.notation.markdown import plain
from viz.state.look import loaded, traced
from viz.state.navigation import view_link
from viz.state.presets import NEXT, POSITIONS, SentenceExample, view_of

ABREAST = 3
STYLE = Path(__file__).with_name("cards.css")


def cards(examples: Sequence[SentenceExample], pictures: Mapping[str, Sequence[str]]) -> None:
    """The examples side by side. pictures: the rows of each one's head, by its title."""
    for start in range(0, len(examples), ABREAST):
        columns = st.columns(ABREAST, gap="small")
        for column, example in zip(columns, examples[start : start + ABREAST], strict=False):
            with column, st.container(border=True, gap="small", height="stretch"):
                _card(example, pictures[example.title])


def _card(example: SentenceExample, rows: Sequence[str]) -> None:
    view = example.view
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(_picture(rows, head_label((view.place, view.head))), width="content")
        with st.container(gap=None):
            if may_be_linked(view.model):
                view_link("pages/attention.py", f"**{plain(example.title)}** →", view)
            else:
                st.markdown(f"**{plain(example.title)}**")
            st.text(f"“{view.text}”")
    st.caption(plain(example.look_for))
    if labels := _labels(view.model, (view.place, view.head)):
        st.caption(f"In the shipped profile: {plain('; '.join(labels))}.")
    if example.without and may_be_linked(view.model):
        heads = f"the {len(example.without)} heads" if len(example.without) > 1 else "this head"
        show = POSITIONS if view.place.endswith("cross") else NEXT
        label = f"Leave {heads} out →"
        view_link("pages/laboratory.py", label, replace(example.left_out, show=show))


def _labels(model: str, head: Head) -> list[str]:
    """The labels of a head in the profile that ships, found on prompts and not on this sentence."""
    found = shipped_profile(model)
    return [] if found is None else labels_by_head(found).get(head, [])


def say_absent(name: str) -> None:
    """Where a model is not on this computer, says how it is fetched."""
    if not may_be_linked(name):
        title = plain(models[name].title)
        st.info(
            f"{title} is not on this computer. On any other page, choose it under “Other models”; "
            "then its examples open from here."
        )


def _picture(rows: Sequence[str], name: str) -> str:
    said = html.escape(f"Weights of {name}: one row per query, one column per key", quote=True)
    return (
        f'<div class="head-thumbnail" role="img" aria-label="{said}" '
        f'style="--head: url({thumbnail(rows)})"></div>'
    )


SENTENCES: dict[Shape, tuple[str, ...]] = {
    "decoder": (
        "river stone garden river stone garden river stone",
        "She opened the door and walked into the cold night",
    ),
    "encoder": ("The bank of the river was steep; the bank in town was closed",),
    "encoder-decoder": ("The black cat sleeps",),
}


def found_examples(name: str) -> dict[SentenceExample, list[str]]:
    """For each kind of head the clearest one on the first sentence that has one, with its rows. The model is
    loaded already. Raises ValueError as `Model.trace` does."""
    found: dict[str, tuple[SentenceExample, list[str]]] = {}
    for text in SENTENCES[loaded(name).config.shape]:
        trace = traced(Request(name, text))
        for statistic, head, share in _clearest(trace):
            found.setdefault(statistic.name, _example(name, text, trace, statistic, head, share))
    return dict(found.values())


def _clearest(trace: Trace) -> Iterator[tuple[Statistic, Head, float]]:
    """Of each family of heads the clearest one of each kind."""
    for family in families(trace):
        known = scores(trace, family)
        for statistic in STATISTICS:
            if called := known.called(statistic.name):
                yield statistic, *called[0]


def _example(
    name: str, text: str, trace: Trace, statistic: Statistic, head: Head, share: float
) -> tuple[SentenceExample, list[str]]:
    weights = trace.find(head[0]).weights(head[1])
    query = len(weights) - 1
    view = view_of(name, text, head, (query, int(weights[query].argmax())))
    words = f"{statistic.meaning} On this sentence: {share:.2f}."
    return SentenceExample(statistic.title, view, words), rows_of(weights)


# The heads of the examples, made small beforehand, so that the page loads no model.
# `python -m tools.thumbnails` writes them; a test compares each with the weights of its model.

FILE = Path(__file__).with_name("thumbnails.json")


@cache
def thumbnails() -> dict[str, list[str]]:
    """The rows of each example's head, by the example's title, as `viz.figures.svg` takes them."""
    rows: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return rows
