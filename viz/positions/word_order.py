"""Lion kills tiger, tiger kills lion: the live model with positions on and off."""

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from model.engine import Request
from model.intervention import Intervention
from model.tokenizers import GPT2Subset
from model.word_order import Reordered, reordered
from viz.axes import token_label
from viz.differences import difference
from viz.figures.token_rows import colour_end
from viz.figures.word_pairs import DIMENSIONS, PAIRS, word_pairs
from viz.markdown import plain
from viz.positions.formulas import ORDER_BLIND
from viz.shell import Look, chart, table, traced

PAIRS_OF_SENTENCES = (
    ("Lion kills tiger", "Tiger kills lion"),
    ("lion chased tiger", "tiger chased lion"),
)
TEXT_LIMIT = 500  # characters of one of these sentences
WORDS = 6  # of the visitor's sentence, where the model knows no lion
EQUAL = 1e-3  # rounding stays far below, and what positions do far above


ON, OFF, LIFTED = "Positions on", "Positions off", "Off, mask lifted"
CHANGES = {
    ON: Intervention(),
    OFF: Intervention(positions=False),
    LIFTED: Intervention(positions=False, mask="none"),
}


def word_order(seen: Look) -> None:
    """Two sentences of the same words; how far each word's vectors lie apart, each way."""
    st.markdown(f"**What to look for.** {_look(seen)}")
    picture, choices = st.columns([3, 2], gap="large")
    with choices:
        texts = _sentences(seen)
        ways = (ON, OFF, LIFTED) if seen.trace.source == "decoder" else (ON, OFF)
        found = _runs(seen, texts, ways)
        if found is None:
            return
        way = st.segmented_control(
            "Draw",
            ways,
            default=OFF,
            required=True,
            key=f"positions-way-{len(ways)}",
        )
        _verdicts(found)
        st.caption(_why(seen, found))
        st.latex(ORDER_BLIND)
        st.caption("P puts the tokens in another order. What obeys this is blind to order.")
    tokens = [token.text for token in traced(_request(seen, texts[0], ON)).tokens]
    shown = found[way]
    end = colour_end(np.vstack([run.first for run in found.values()]))
    with picture:
        chart(word_pairs(shown.first, shown.second, texts=tokens, end=end), "positions-word-pairs")
        st.caption(_drawn(way, shown, tokens))
    _table(found, tokens)


def _look(seen: Look) -> str:
    if seen.trace.source == "decoder":
        return (
            "Without positions this model still tells the two sentences apart: its causal mask lets "
            "each token see only those before it, and that carries the order. Lift the mask too, "
            "and the pairs of rows become equal."
        )
    return (
        "Without positions the two rows of a word are equal: who does what to whom is lost. "
        "With positions they differ."
    )


def _sentences(seen: Look) -> tuple[str, str]:
    """Both sentences, as they are fed."""
    defaults = _defaults(seen)
    names = ("First sentence", "The same words in another order")
    one, other = (
        st.text_input(
            name,
            default,
            max_chars=TEXT_LIMIT,
            key=f"positions-{number}-{hash((default, seen.model.name))}",
        )
        for number, (name, default) in enumerate(zip(names, defaults, strict=True))
    )
    if isinstance(seen.model.tokenizer, GPT2Subset):
        st.caption(
            "Both are read with a space in front: a word at the very beginning would be another token."
        )
        return f" {one}", f" {other}"
    return one, other


def _defaults(seen: Look) -> tuple[str, str]:
    """A lion and a tiger that this model knows; else words of the visitor's sentence, turned."""
    for one, other in PAIRS_OF_SENTENCES:
        if not seen.model.new_words(f" {one}") and not seen.model.new_words(f" {other}"):
            return one, other
    words = seen.request.text.split()[:WORDS]
    return " ".join(words), " ".join(reversed(words))


def _request(seen: Look, text: str, way: str) -> Request:
    return replace(seen.request, text=text, intervention=CHANGES[way])


def _runs(seen: Look, texts: tuple[str, str], ways: tuple[str, ...]) -> dict[str, Reordered] | None:
    """Both sentences run each way and laid word beside word; a sentence where that cannot be."""
    try:
        return {
            way: reordered(*(traced(_request(seen, text, way)) for text in texts)) for way in ways
        }
    except ValueError as refusal:
        st.warning(plain(str(refusal)))
        return None


def _verdicts(found: dict[str, Reordered]) -> None:
    """The largest difference each way, really computed."""
    for way, run in found.items():
        equal = "equal up to rounding" if run.largest < EQUAL else "different"
        st.markdown(f"{way}: largest difference **{_size(run.largest)}**, {equal}.")


def _why(seen: Look, found: dict[str, Reordered]) -> str:
    """What these numbers mean for this model."""
    if seen.model.config.positions == "none":
        return "This model has no positions: switching them off changes nothing."
    if LIFTED in found:
        return (
            "Switching positions off alone does not make a GPT blind to order. The first token sees "
            "itself only, the second sees two, and so on: the mask is a kind of position."
        )
    return (
        "Without positions and without a mask attention treats a text as a bag of words. "
        "Differences of that size come from rounding: sums are taken in another order."
    )


def _table(found: dict[str, Reordered], tokens: list[str]) -> None:
    columns: dict[str, object] = {"token": list(map(token_label, tokens))}
    columns |= {f"{way}, largest difference": run.differences for way, run in found.items()}
    table(pd.DataFrame(columns).rename_axis("position"), "positions-order", decimals=8)


def _drawn(way: str, run: Reordered, tokens: list[str]) -> str:
    """What the picture shows, and what of it."""
    width = run.first.shape[1]
    said = (
        f"{way}: each token's last state in the first sentence, and below it in the second. "
        "All ways have one scale of colours."
    )
    if width > DIMENSIONS:
        said += (
            f" Drawn: the first {DIMENSIONS} of {width} dimensions; the differences are over all."
        )
    if len(tokens) > PAIRS:
        said += f" Drawn: the first {PAIRS} of {len(tokens)} tokens."
    return said


def _size(value: float) -> str:
    return f"{value:.4f}" if value >= EQUAL else difference(value)
