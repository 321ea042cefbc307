"""Positions: where a token stands, as a table, as a sum, and what is lost without it."""

import streamlit as st

from model.analysis.stream.positions import biased
from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.positions.biases import score_biases
from viz.views.positions.sum import position_sum
from viz.views.positions.tables import position_likeness, position_table
from viz.views.positions.word_order import word_order
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.positions")
name = sentences_of("state.navigation")  # of a view

page.open_page("pages/positions.py")
seen = page.look()

VIEWS: dict[str, PanelView] = {"Word order": word_order}
config, adds_to_scores = seen.model.config, bool(biased(seen.baseline or seen.trace))
if config.adds_positions or config.turns_positions:
    VIEWS["The table"] = position_table
    if not adds_to_scores:
        VIEWS["How alike"] = position_likeness
if config.adds_positions:
    VIEWS[name("added_tokens")] = position_sum
if adds_to_scores:
    VIEWS = {name("added_scores"): score_biases, **VIEWS}

OPENING = say("attention_reads_tokens")


def idea() -> None:
    st.markdown(say("learned_positions_table"))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(
        "sinusoidal-table",
        "embedding-plus-position",
        "added-or-appended",
        "why-ten-thousand",
        "shift-is-a-rotation",
        "rotary-positions",
        "learned-positions",
        "lion-kills-tiger",
    ),
    live=lambda: page.views(VIEWS, seen),
)
