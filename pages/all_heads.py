"""All heads: one grid, coloured by what each attends to, writes, or is needed for."""

import streamlit as st

from viz.notation.head_formulas import concatenation
from viz.shell import page
from viz.shell.panel import PanelView
from viz.tour.card import beside_questions
from viz.views.all_heads.ablation import ablation
from viz.views.all_heads.first_token import first_token
from viz.views.all_heads.patterns import from_word_to_word, grid, pattern
from viz.views.all_heads.writing import head_results
from viz.views.corpus.choice import OVER, OWN, sources
from viz.views.corpus.views import over_corpus, own_corpus
from viz.views.glossary.glossary import glossary_link
from viz.views.worked.by_hand import by_hand

page.open_page("pages/all_heads.py")
look = page.look(head=True)

VIEWS: dict[str, PanelView] = {
    "Maps": grid,
    "Pattern": pattern,
    "Word to word": from_word_to_word,
    "First token": first_token,
}
if look.model.runs:
    VIEWS |= {"What it writes": head_results, "Leave one out": ablation}
    VIEWS |= {OVER: over_corpus} if sources(look.model.address) else {}
    VIEWS |= {OWN: own_corpus}


def idea() -> None:
    words, formula = st.columns([3, 2], gap="medium")
    words.markdown(
        f"""
Each layer has several **{glossary_link("head", "heads")}**. Each has its own small
{glossary_link("query", "queries")}, and {glossary_link("key", "keys")} and
{glossary_link("value", "values")} of its own or shared with a few others, so each can look for
something else: the token before, what followed the same word earlier, the end of the sentence.

Their {glossary_link("output", "outputs")} are concatenated and multiplied by one matrix, W_O.
That is the same as multiplying each head's output by its own rows of W_O and adding up the results:
the heads do not mix before they add to the {glossary_link("residual stream")}.

You need not open all of them. A **score** of what heads attend to finds candidates. It says what a head
attends to, not why. **Leaving a head out** shows what the model loses without it, which is closer to the
purpose of the head.
"""
    )
    config = look.model.config
    formula.latex(concatenation(config))
    formula.caption(
        "In brackets the outputs of the heads stand side by side; the second line is the same as a sum of "
        "what each head writes."
    )
    if config.groups_keys:
        formula.caption(
            f"In this model {config.heads // config.key_head_count} query heads share each head of "
            f"keys and values: {config.heads} heads have {config.key_head_count} of these."
        )


def live() -> None:
    beside_questions("all-heads", look, lambda: page.views(VIEWS, look, listed="Colour by"))


page.beats(
    opening="What each head attends to, what it writes, and what the model loses without it.",
    idea=idea,
    hand=lambda: by_hand(
        "ladder-multi-head",
        "one-head-or-two",
        "one-matrix-then-split",
        "head-widths",
        "grouped-queries",
        "induction-circuit",
    ),
    live=live,
)
