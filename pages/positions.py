"""Positions: where a token stands, as a table, as a sum, and what is lost without it."""

import streamlit as st

from model.analysis.stream.positions import biased
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.positions.biases import score_biases
from viz.views.positions.sum import position_sum
from viz.views.positions.tables import position_likeness, position_table
from viz.views.positions.word_order import word_order
from viz.views.worked.by_hand import by_hand

page.open_page("pages/positions.py")
seen = page.look()

VIEWS: dict[str, PanelView] = {"Word order": word_order}
config, adds_to_scores = seen.model.config, bool(biased(seen.baseline or seen.trace))
if config.adds_positions or config.turns_positions:
    VIEWS["The table"] = position_table
    if not adds_to_scores:
        VIEWS["How alike"] = position_likeness
if config.adds_positions:
    VIEWS["Added to the tokens"] = position_sum
if adds_to_scores:
    VIEWS = {"Added to the scores": score_biases, **VIEWS}

OPENING = (
    "Attention reads all tokens at once, and by itself it does not know which comes first. So "
    "each token is given its **position**."
)


def idea() -> None:
    st.markdown(
        """
- **Learned** positions are a table like the embedding: one row for each position. The table ends at a largest
  position; a longer text has no rows for the rest.
- **Sinusoidal** positions come from a formula: pairs of sine and cosine, from fast to slow. A shift by some
  number of positions is a rotation of each pair.
- **Rotary** positions add nothing. They rotate each query and key by an angle that grows with the position,
  so that a score depends on the distance of the two tokens.
- **Biases** add a number for the distance to each score: a slope times the distance (ALiBi), or a learned
  number for each bucket of distances (T5).
"""
    )


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
