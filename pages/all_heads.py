"""All heads: one grid, coloured by what each attends to, writes, or is needed for."""

import streamlit as st

from viz.notation.head_formulas import concatenation
from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import PanelView
from viz.tour.card import beside_questions
from viz.views.all_heads.ablation import ablation
from viz.views.all_heads.first_token import first_token
from viz.views.all_heads.patterns import from_word_to_word, grid, pattern
from viz.views.all_heads.writing import head_results
from viz.views.corpus.choice import OVER, OWN, sources
from viz.views.corpus.views import over_corpus, own_corpus
from viz.views.glossary.glossary import with_terms
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.all_heads")

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
    words.markdown(with_terms(say("layer_several_heads")))
    config = look.model.config
    formula.latex(concatenation(config))
    formula.caption(say("brackets_outputs_heads"))
    if config.groups_keys:
        formula.caption(
            say(
                "model_query_heads",
                heads=config.heads // config.key_head_count,
                config_heads=config.heads,
                key_head_count=config.key_head_count,
            )
        )


def live() -> None:
    beside_questions("all-heads", look, lambda: page.views(VIEWS, look, listed="Colour by"))


page.beats(
    opening=say("head_attends_writes"),
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
