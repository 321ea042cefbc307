"""Cards that open an example: its head in small, its sentence, and what to look for."""

import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import streamlit as st

from model.analysis.heads.ranking import STATISTICS, scores
from model.analysis.heads.statistics import families
from model.loading.registry import may_be_linked, models
from model.nn.config import Shape
from model.nn.places import head_label
from model.profile.shipped import shipped_profile
from model.serving.engine import Request
from viz.figures.svg import rows_of, thumbnail
from viz.notation.head_labels import labels_in_words
from viz.notation.markdown import plain
from viz.state.look import loaded, traced
from viz.state.navigation import HOME, view_link
from viz.state.presets import SentenceExample, view_of

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
    head = (view.place, view.head)
    alt = f"Weights of {head_label(head)}: one row per query, one column per key"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(
            f'<div class="head-thumbnail" role="img" aria-label="{html.escape(alt, quote=True)}" '
            f'style="--head: url({thumbnail(rows)})"></div>',
            width="content",
        )
        with st.container(gap=None):
            if may_be_linked(view.model):
                view_link(HOME, f"**{plain(example.title)}** →", view)
            else:
                st.markdown(f"**{plain(example.title)}**")
            st.text(f"“{view.text}”")
    st.caption(plain(example.look_for))
    profile = shipped_profile(view.model)  # its labels were found on prompts, not on this sentence
    if profile is not None and (label := labels_in_words(profile).get(head)):
        st.caption(f"In the shipped profile: {plain(label)}")
    if example.without and may_be_linked(view.model):
        heads = f"the {len(example.without)} heads" if len(example.without) > 1 else "this head"
        label = f"Leave {heads} out →"
        view_link(HOME, label, example.left_out)


def say_absent(name: str) -> None:
    """Where a model is not on this computer, says how it is fetched."""
    if not may_be_linked(name):
        title = plain(models[name].title)
        st.info(
            f"{title} is not on this computer. On any other page, choose it under “Other models”; "
            "then its examples open from here."
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
    clearest: dict[str, tuple[SentenceExample, list[str]]] = {}
    for text in SENTENCES[loaded(name).config.shape]:
        trace = traced(Request(name, text))
        for family in families(trace):
            known = scores(trace, family)
            for statistic in STATISTICS:
                called = known.called(statistic.name)
                if not called or statistic.name in clearest:
                    continue
                (place, head), share = called[0]
                weights = trace.find(place).weights(head)
                query = len(weights) - 1
                view = view_of(name, text, (place, head), (query, int(weights[query].argmax())))
                words = f"{statistic.meaning} On this sentence: {share:.2f}."
                example = SentenceExample(statistic.title, view, words)
                clearest[statistic.name] = example, rows_of(weights)
    return dict(clearest.values())


# The heads of the examples, made small beforehand, so that the page loads no model.
# `python -m tools.thumbnails` writes them; a test compares each with the weights of its model.

FILE = Path(__file__).with_name("thumbnails.json")


@cache
def thumbnails() -> dict[str, list[str]]:
    """The rows of each example's head, by the example's title, as `viz.figures.svg` takes them."""
    rows: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return rows
