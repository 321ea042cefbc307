"""Encoder and decoder: a translation word by word, its alignment, and its three attentions."""

import streamlit as st

from viz.notation.formulas import ATTENTION
from viz.shell import page
from viz.shell.frame import frame
from viz.views.glossary.glossary import glossary_link
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

page.open_page("pages/encoder_decoder.py")
open_on_translator()
with frame().said:  # before the run, which stops the page where a word is not known
    advise_on_english()
    if not readable():
        other_sentences()
        say_origin()
look = page.look(offers=())

OPENING = (
    "The **encoder** reads the whole source at once, and the **decoder** writes the target, one "
    "word after another. To write a word, the decoder attends to the words of the source: "
    "**cross-attention**."
)


def idea() -> None:
    st.markdown(
        f"""
The **{glossary_link("encoder")}** reads the whole source at once. The
**{glossary_link("decoder")}** writes the target, one word after another. Both are stacks of
attention and feed-forward layers; their three kinds of attention share one formula and differ only in
where queries, keys and values come from. X is the source's stream, Y the target's, and E the output
of the encoder.
"""
    )
    st.latex(ATTENTION)
    for name, streams, words in (
        (
            "Encoder self-attention",
            ("X", "X"),
            (
                "Queries, keys and values all come from the source. Every word may attend to every "
                "other."
            ),
        ),
        (
            "Masked decoder self-attention",
            ("Y", "Y"),
            "Queries, keys and values all come from the target. The causal mask hides the words "
            "that are not yet written.",
        ),
        (
            "Cross-attention",
            ("Y", "E"),
            "Queries come from the decoder, keys and values from the encoder: the target asks, the "
            "source answers. There is no mask, because the whole source may be read.",
        ),
    ):
        text, shown = st.columns([2, 3], vertical_alignment="center")
        text.markdown(f"**{name}.** {words}")
        shown.latex(projections(*streams, bias=look.model.config.qkv_bias))
    st.markdown(
        f"""
The target starts with a mark for the start. At each step the most likely word is added
({glossary_link("greedy decoding")}), until the mark for the end. In training the right target is known,
and all its words are trained in parallel: that is {glossary_link("teacher forcing")}. Cross-attention
often shows an **alignment**: to write a word, the decoder reads the word that it translates.
"""
    )


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
