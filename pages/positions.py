"""Positions: where a token stands, as a table, as a sum, and what is lost without it."""

import streamlit as st

from model.analysis.stream.positions import biased
from model.nn.positions import ALIBI, SINUSOIDAL
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.positions.biases import score_biases
from viz.views.positions.sum import position_sum, sum_of
from viz.views.positions.tables import position_likeness, position_table
from viz.views.positions.word_order import word_order
from viz.views.worked.by_hand import by_hand

page.open_page("pages/positions.py")
seen = page.look()

VIEWS: dict[str, PanelView] = {
    "Word order": word_order,
    "The table": position_table,
    "How alike": position_likeness,
    "Added to the tokens": position_sum,
}
if biased(seen.baseline or seen.trace):
    own = VIEWS if seen.model.config.adds_positions else {"Word order": word_order}
    VIEWS = {"Added to the scores": score_biases, **own}

OPENING = (
    "Attention reads all tokens at once, and by itself it does not know which comes first. So "
    "each token is given its **position**: added to its vector, turned into its query and key, or "
    "added to the scores."
)


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    words.markdown(
        """
Attention reads all tokens at once. By itself it does not know which comes first: “Lion kills tiger” and
“Tiger kills lion” would be the same bag of words. So each token is given its **position**.

- **Sinusoidal** positions come from a formula: pairs of sine and cosine, from fast to slow. A pair is
  needed because a sine alone gives two positions the same value. With the cosine beside it, a shift by
  some number of positions is a rotation.
- **Learned** positions are a table like the embedding: one row for each position, found by training.
  GPT-2 and BERT have them. The table ends at a largest position; a longer text has no rows for the rest.
- **Rotary** positions add nothing. They rotate each query and key by an angle that grows with the
  position, so that a score depends on the distance of the two tokens.
- **Biases** add nothing to the tokens either. A number for the distance is added to each score: a slope
  times the distance (ALiBi), or a learned number for each bucket of distances (T5).

Sinusoidal and learned positions are **added** to the token's vector before the first layer.
"""
    )
    formula.latex(SINUSOIDAL.formula())
    formula.latex(sum_of(("tokens", "positions")))
    formula.latex(ALIBI.formula())
    if seen.model.config.biases_positions:
        formula.caption("This model adds its positions to the scores.")
    if seen.model.config.turns_positions:
        formula.caption("This model has rotary positions: it adds no such row to its tokens.")


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
