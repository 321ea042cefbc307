"""Lion kills tiger, tiger kills lion: the live model with positions on and off."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.analysis.tokens.embeddings import Reordered, reordered, same_tokens
from model.nn.intervention import Intervention
from model.run.model import Model
from model.run.tokenizers import GPT2Subset
from model.serving.engine import Request
from viz.elements.one_of import one_of
from viz.figures.vectors import DIMENSIONS, PAIRS, colour_end, order_differences, word_pairs
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.pictures import chart, look_for, table, without_sentence
from viz.state.look import Look, traced
from viz.views.positions.formulas import ORDER_BLIND

Pair = tuple[str, str]
PAIRS_OF_SENTENCES: tuple[Pair, ...] = (
    ("Lion kills tiger", "Tiger kills lion"),
    ("lion chased tiger", "tiger chased lion"),
)
TEXT_LIMIT = 500  # characters of one of these sentences
WORDS = 6  # of the visitor's sentence, where the model knows no lion
EQUAL = 1e-4  # of the largest value: rounding stays far below, and what positions do far above
ON, OFF, LIFTED = "Positions on", "Positions off", "Off, mask lifted"
SHORT = {ON: "on", OFF: "off", LIFTED: "no mask"}
DIFFERENCES = "Differences"  # of the two sentences, each way
INTERVENTIONS = {
    ON: Intervention(),
    OFF: Intervention(positions=False, bias=False),
    LIFTED: Intervention(positions=False, bias=False, mask="none"),
}


def word_order(seen: Look) -> None:
    """Two sentences of the same words; how far each word's vectors lie apart, each way."""
    picture, choices = st.columns([3, 2], gap="large")
    with choices:
        above = st.container()
        texts = _sentences(seen)
        ways = (ON, OFF, LIFTED) if seen.trace.source == "decoder" else (ON, OFF)
        try:
            found = {
                way: reordered(*(traced(_request(seen, text, way)) for text in texts))
                for way in ways
            }
        except ValueError as refusal:
            st.markdown(plain(f"These two sentences cannot be compared. {refusal}"))
            return
        look_for(_look(found), above)
        key, names = f"positions-way-{len(ways)}", {way: SHORT[way].capitalize() for way in ways}
        drawn = one_of("Picture", (DIFFERENCES, *ways), key, named=lambda way: names.get(way, way))
        for name, run in found.items():
            size, equal = f"{run.largest:.4f}", "different"
            if _is_equal(run):
                size, equal = difference(run.largest), "equal up to rounding"
            st.markdown(f"{name}: largest difference **{size}**, {equal}.")
        st.caption(_why(seen, found))
        st.latex(ORDER_BLIND)
        st.caption(
            "P puts the tokens in another order. A function with this property ignores the order."
        )
    tokens = [token.text for token in traced(_request(seen, texts[0], ON)).tokens]
    with picture:
        chart(_figure(found, drawn, tokens), "positions-word-pairs")
        st.caption(_drawn(drawn, found[ON].first.shape[1], tokens))
    columns: dict[str, object] = {"token": list(map(token_label, tokens))}
    columns |= {f"{way}, largest difference": run.differences for way, run in found.items()}
    table(columns, "positions-order", index="position", decimals=8)


def _figure(found: dict[str, Reordered], drawn: str, tokens: list[str]) -> go.Figure:
    """The differences of the two sentences each way, or both vectors of each word one way."""
    if drawn == DIFFERENCES:
        apart = {SHORT[way]: run.second - run.first for way, run in found.items()}
        end = colour_end(np.vstack(list(apart.values())))
        return order_differences(apart, texts=tokens, end=end)
    end = colour_end(
        np.vstack([each for run in found.values() for each in (run.first, run.second)])
    )
    return word_pairs(found[drawn].first, found[drawn].second, texts=tokens, end=end)


def _look(found: dict[str, Reordered]) -> str:
    """What these two runs show, each way."""
    on, off, last = (_is_equal(found[way]) for way in (ON, OFF, list(found)[-1]))
    if on or not last:
        return "The largest differences show in which case the model tells the two sentences apart."
    if LIFTED in found and not off:
        return (
            "Without positions this model still tells the two sentences apart: its causal mask "
            "shows each token only the earlier ones, and this carries the order. Lift the mask "
            "too, and the pairs of rows become equal."
        )
    return (
        "Without positions the two rows of a word are equal: who does what to whom is lost. "
        "With positions they differ."
    )


def _sentences(seen: Look) -> tuple[str, str]:
    """Both sentences, as they are fed."""
    defaults = _defaults(seen)
    if defaults in PAIRS_OF_SENTENCES:
        without_sentence()
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
    fed = _as_fed(seen.model, (one, other))
    if fed != (one, other):
        st.caption(
            "Both are read with a space in front, because a word at the very beginning would be a "
            "different token."
        )
    return fed


def _defaults(seen: Look) -> tuple[str, str]:
    """A lion and a tiger that are the same tokens in either place for this model; else words of the
    visitor's sentence, turned."""
    for pair in PAIRS_OF_SENTENCES:
        if _hold_the_same(seen.model, _as_fed(seen.model, pair)):
            return pair
    words = seen.request.text.split()[:WORDS]
    return " ".join(words), " ".join(reversed(words))


def _as_fed(model: Model, pair: Pair) -> Pair:
    """Both sentences with a space in front, where a first word would otherwise be another token."""
    spaced = (f" {pair[0]}", f" {pair[1]}")
    if isinstance(model.tokenizer, GPT2Subset):
        return spaced
    needs_it = not _hold_the_same(model, pair) and _hold_the_same(model, spaced)
    return spaced if needs_it else pair


def _hold_the_same(model: Model, pair: Pair) -> bool:
    """Whether a model knows both sentences, as the same tokens in some order."""
    if any(map(model.new_words, pair)):
        return False
    try:
        same_tokens(*map(model.tokens, pair))
    except ValueError:
        return False
    return True


def _request(seen: Look, text: str, way: str) -> Request:
    return replace(seen.request, text=text, intervention=INTERVENTIONS[way])


def _why(seen: Look, found: dict[str, Reordered]) -> str:
    """What these numbers mean for this model."""
    if seen.model.config.positions == "none":
        return "This model has no positions: switching them off changes nothing."
    if LIFTED in found:
        return (
            "Switching off positions alone does not make a GPT ignore the order. The first token "
            "sees only itself, the second sees two, and so on: the mask is itself a kind of "
            "position."
        )
    said = "Without positions and without a mask, attention treats a text as a bag of words."
    if _is_equal(found[OFF]):
        said += (
            " Differences of this size come from rounding: the sums are computed in a "
            "different order."
        )
    return said


def _drawn(drawn: str, width: int, tokens: list[str]) -> str:
    """What the picture shows, and what of it."""
    if drawn == DIFFERENCES:
        said = (
            "Each token's last state in the second sentence minus that in the first, one row per "
            "token. An empty row means no difference beyond rounding."
        )
    else:
        said = (
            f"{drawn}: the last state of each token in the first sentence, and below it in the "
            "second."
        )
    said += " All pictures use one colour scale."
    if width > DIMENSIONS:
        said += (
            f" The picture shows the first {DIMENSIONS} of {width} dimensions; the differences are "
            "over all of them."
        )
    if len(tokens) > PAIRS:
        said += f" The picture shows the first {PAIRS} of {len(tokens)} tokens."
    return said


def _is_equal(run: Reordered) -> bool:
    """Whether the rows of every token are equal but for rounding, which grows with the values."""
    return run.largest <= EQUAL * float(np.abs(run.first).max())
