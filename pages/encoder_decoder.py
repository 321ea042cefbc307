"""Encoder and decoder: a translation word by word, its alignment, and its three attentions."""

import streamlit as st

from viz.notation.formulas import ATTENTION
from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.frame import frame
from viz.views.glossary.glossary import with_terms
from viz.views.translation.sentences import (
    SHAPE,
    advise_on_english,
    offer_translator,
    open_on_translator,
    other_sentences,
    readable,
    say_origin,
)
from viz.views.translation.views import (
    own_target,
    projections,
    show_alignment,
    three_attentions,
    translate,
)
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.encoder_decoder")

page.open_page("pages/encoder_decoder.py")
open_on_translator()
with frame().said:  # before the run, which stops the page where a word is not known
    advise_on_english()
    if not readable():
        other_sentences()
        say_origin()
look = page.look(offers=())

OPENING = say("encoder_reads_whole")


def idea() -> None:
    st.markdown(with_terms(say("encoder_term_encoder")))
    st.latex(ATTENTION)
    for name, streams, words in (
        (
            "Encoder self-attention",
            ("X", "X"),
            say("queries_keys_values"),
        ),
        (
            say("masked_decoder_self"),
            ("Y", "Y"),
            say("queries_keys_values_come"),
        ),
        (
            "Cross-attention",
            ("Y", "E"),
            say("queries_come_decoder"),
        ),
    ):
        text, shown = st.columns([2, 3], vertical_alignment="center")
        text.markdown(f"**{name}.** {words}")
        shown.latex(projections(*streams, bias=look.model.config.qkv_bias))
    st.markdown(with_terms(say("target_starts_mark")))


def live() -> None:
    if look.model.config.shape != SHAPE:
        offer_translator(look.title)
        other_sentences()
        say_origin()
        return
    page.views(
        {
            "Translate": translate,
            "Alignment": show_alignment,
            "Three attentions": three_attentions,
            "Your own French": own_target,
        },
        look,
    )


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(
        "decoder-layer",
        "sequence-in-three-steps",
        "encoder-layer",
        "sentence-vector",
        "all-positions-at-once",
        "padding-to-the-source",
        "encoder-of-the-paper",
    ),
    live=live,
)
