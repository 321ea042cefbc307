"""Lion kills tiger, tiger kills lion: the live model with positions on and off."""

from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis.tokens.embeddings import Reordered, reordered, same_tokens
from model.nn.intervention import Intervention
from model.run.model import Model
from model.run.tokenizers import GPT2Subset
from model.serving.engine import Request
from model.trace.unproven import NotShownError
from viz.figures.vectors import DIMENSIONS, PAIRS, colour_end, order_differences
from viz.notation.labels import token_label
from viz.notation.numbers import difference
from viz.shell.panel import Caption, Formula, Panel, Table
from viz.state.look import Look, traced

WordPair = tuple[str, str]
PAIRS_OF_SENTENCES: tuple[WordPair, ...] = (
    ("Lion kills tiger", "Tiger kills lion"),
    ("lion chased tiger", "tiger chased lion"),
)
TEXT_LIMIT = 500  # characters of one of these sentences
WORDS = 6  # of the visitor's sentence, where the model knows no lion
EQUAL = 1e-4  # of the largest value: rounding stays far below, and what positions do far above
ON, OFF, LIFTED = "Positions on", "Positions off", "Off, mask lifted"
INTERVENTIONS = {
    ON: Intervention(),
    OFF: Intervention(positions=False, bias=False),
    LIFTED: Intervention(positions=False, bias=False, mask="none"),
}


def word_order(look: Look) -> Panel:
    """Two sentences of the same words; how far each word's vectors lie apart, each way."""
    typed = _sentences(look)
    texts = _as_fed(look.model, typed)
    ways = (ON, OFF, LIFTED) if look.trace.source == "decoder" else (ON, OFF)
    try:
        runs = {
            way: reordered(*(traced(_request(look, text, way)) for text in texts)) for way in ways
        }
    except ValueError as refusal:
        raise NotShownError(f"These two sentences cannot be compared. {refusal}") from refusal
    tokens = [token.text for token in traced(_request(look, texts[0], ON)).tokens]
    apart = {_size(way, run): run.second - run.first for way, run in runs.items()}
    spaced = (
        "Both are read with a space in front, because a word at the very beginning would be a "
        "different token."
    )
    columns: dict[str, object] = {"token": list(map(token_label, tokens))}
    columns |= {f"{way}, largest difference": run.differences for way, run in runs.items()}
    return Panel(
        "positions-word-order",
        look_for=_look_for(runs),
        picture=order_differences(
            apart, texts=tokens, end=colour_end(np.vstack(list(apart.values())))
        ),
        beside=[
            Formula(r"f(P X) = P\, f(X)"),
            Caption(
                "P puts the tokens in another order. A function with this property ignores the order."
            ),
            Caption(_why(look, runs)),
            *([Caption(spaced)] if texts != typed else []),
            Caption(_drawn(runs[ON].first.shape[1], tokens)),
        ],
        table=Table(columns, index="position", decimals=8),
    )


def _size(way: str, run: Reordered) -> str:
    size, equal = f"{run.largest:.2f}", "different"
    if _is_equal(run):
        size, equal = difference(run.largest), "equal"
    return f"{way}: up to {size}, {equal}"


def _look_for(runs: dict[str, Reordered]) -> str:
    """What these two runs show, each way."""
    on, off, last = (_is_equal(runs[way]) for way in (ON, OFF, list(runs)[-1]))
    if on or not last:
        return "The largest differences show in which case the model tells the two sentences apart."
    if LIFTED in runs and not off:
        return (
            "Without positions this model still tells the two sentences apart: its causal mask "
            "shows each token only the earlier ones, and this carries the order. Lift the mask "
            "too, and the pairs of rows become equal."
        )
    return (
        "Without positions the two rows of a word are equal: who does what to whom is lost. "
        "With positions they differ."
    )


def _sentences(look: Look) -> tuple[str, str]:
    """Both sentences, as they are typed."""
    defaults = _defaults(look)
    names = ("First sentence", "Its words reordered")
    one, other = (
        st.text_input(
            name,
            default,
            max_chars=TEXT_LIMIT,
            width=240,
            key=f"positions-{number}-{hash((default, look.model.name))}",
        )
        for number, (name, default) in enumerate(zip(names, defaults, strict=True))
    )
    return one, other


def _defaults(look: Look) -> tuple[str, str]:
    """A lion and a tiger that are the same tokens in either place for this model; else words of the
    visitor's sentence, turned."""
    for pair in PAIRS_OF_SENTENCES:
        if _hold_the_same(look.model, _as_fed(look.model, pair)):
            return pair
    words = look.request.text.split()[:WORDS]
    return " ".join(words), " ".join(reversed(words))


def _as_fed(model: Model, pair: WordPair) -> WordPair:
    """Both sentences with a space in front, where a first word would otherwise be another token."""
    spaced = (f" {pair[0]}", f" {pair[1]}")
    if isinstance(model.tokenizer, GPT2Subset):
        return spaced
    needs_it = not _hold_the_same(model, pair) and _hold_the_same(model, spaced)
    return spaced if needs_it else pair


def _hold_the_same(model: Model, pair: WordPair) -> bool:
    """Whether a model knows both sentences, as the same tokens in some order."""
    if any(map(model.new_words, pair)):
        return False
    try:
        same_tokens(*map(model.tokens, pair))
    except ValueError:
        return False
    return True


def _request(look: Look, text: str, way: str) -> Request:
    return replace(look.request, text=text, intervention=INTERVENTIONS[way])


def _why(look: Look, runs: dict[str, Reordered]) -> str:
    """What these numbers mean for this model."""
    if not look.model.config.has_positions:
        return "This model has no positions: switching them off changes nothing."
    if LIFTED in runs:
        return (
            "Switching off positions alone does not make a GPT ignore the order. The first token "
            "sees only itself, the second sees two, and so on: the mask is itself a kind of "
            "position."
        )
    words = "Without positions and without a mask, attention treats a text as a bag of words."
    if _is_equal(runs[OFF]):
        words += (
            " Differences of this size come from rounding: the sums are computed in a "
            "different order."
        )
    return words


def _drawn(width: int, tokens: list[str]) -> str:
    """What a row is, and what of it is drawn."""
    words = "A row: the token's last state in the second sentence minus that in the first."
    if width > DIMENSIONS:
        words += f" Drawn are the first {DIMENSIONS} of {width} dimensions."
    if len(tokens) > PAIRS:
        words += f" The picture shows the first {PAIRS} of {len(tokens)} tokens."
    return words


def _is_equal(run: Reordered) -> bool:
    """Whether the rows of every token are equal but for rounding, which grows with the values."""
    return run.largest <= EQUAL * float(np.abs(run.first).max())
