"""Lion kills tiger, tiger kills lion: the live model with positions on and off."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import streamlit as st

from model.analysis.tokens.embeddings import Reordered, reordered, same_tokens
from model.nn.intervention import Intervention
from model.run.model import Model
from model.run.tokenizers import GPT2Subset
from model.serving.engine import Request
from model.trace.unproven import NotShownError
from viz.figures.heatmap import Axis, fitted_scale, heatmap, numbers_in_cells
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Formula, Panel, Table
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced

say = sentences_of("positions.word_order")

WordPair = tuple[str, str]
OTHERS: tuple[WordPair, ...] = (  # where no two words of the visitor's sentence can change places
    ("Lion kills tiger", "Tiger kills lion"),
    ("lion chased tiger", "tiger chased lion"),
)
WORDS = 12  # at the beginning of the sentence: two of them change places
DRAWN = 16  # tokens
EQUAL = 1e-4  # of the largest value: rounding stays far below, and what positions do far above
ON, OFF, LIFTED = "with<br>positions", "without<br>", "without,<br>no mask"
INTERVENTIONS = {
    ON: Intervention(),
    OFF: Intervention(positions=False, bias=False),
    LIFTED: Intervention(positions=False, bias=False, mask="none"),
}


def word_order(look: Look) -> Panel:
    """The sentence and the same words in another order; how far each token's vectors lie apart, each way."""
    # The visitor's sentence, and its words in another order as they are typed.
    first, default = _defaults(look)
    other = st.text_input(
        "Its words reordered",
        default,
        max_chars=TEXT_LIMIT,
        width=560,
        key=f"positions-reordered-{hash((default, look.model.name))}",
    )
    typed = first, other
    texts = _as_fed(look.model, typed)
    ways = (ON, OFF, LIFTED) if look.trace.source == "decoder" else (ON, OFF)
    try:
        runs = {
            way: reordered(*(traced(_request(look, text, way)) for text in texts)) for way in ways
        }
    except ValueError as refusal:
        raise NotShownError(f"These two sentences cannot be compared. {refusal}") from refusal
    tokens = [token.text for token in traced(_request(look, texts[0], ON)).tokens]
    apart = {way.replace("<br>", " ").strip(): run.differences for way, run in runs.items()}
    values = np.stack(list(apart.values()), 1)[:DRAWN]
    picture = heatmap(
        values,
        rows=Axis("", tokens[:DRAWN]),
        columns=Axis("", list(apart), tokens=False),
        quantity="difference",
        words=numbers_in_cells(values, 2),
    )
    picture.layout.xaxis.autotickangles = [0]
    picture.layout.xaxis.ticktext = [f"<b>{way}</b><br>{_size(runs[way])}" for way in runs]
    return Panel(
        "positions-word-order",
        look_for=_look_for(runs, tokens),
        picture=fitted_scale(picture, "difference", 0),
        beside=[
            Caption(_read(typed, texts, look.request.text, len(tokens))),
            Formula(r"f(P X) = P\, f(X)"),
            Caption(say("p_puts_tokens_another")),
            Caption(_why(look, runs)),
        ],
        table=Table(
            {"token": list(map(token_label, tokens)), **apart}, index="position", decimals=8
        ),
    )


def _size(run: Reordered) -> str:
    return f"max {difference(run.largest) if _is_equal(run) else f'{run.largest:.2f}'}"


def _look_for(runs: dict[str, Reordered], tokens: list[str]) -> str:
    """What these two runs show, each way."""
    on, off, last = (_is_equal(runs[way]) for way in (ON, OFF, list(runs)[-1]))
    if on or not last:
        return say("largest_differences_show")
    most = int(runs[ON].differences.argmax())
    differs = say("positions_differs_most", most_tokens=tokens[most], largest=runs[ON].largest)
    if LIFTED in runs and not off:
        most = int(runs[OFF].differences.argmax())
        without = say("without_differs_most", most_tokens=tokens[most], largest=runs[OFF].largest)
        return say("without_model_still", differs=differs, without=without)
    return say("without_left_rounding", differs=differs)


def _defaults(look: Look) -> WordPair:
    """The sentence with two words exchanged that are the same tokens in either place for this model: names
    before others, then what stands there once, then long words; else a lion and a tiger."""
    words = look.request.text.split(" ")
    cores = [word.strip(".,;:!?\"'()") for word in words[:WORDS]]

    def rank(pair: tuple[int, int]) -> tuple[bool, int, int, int]:
        one, other = (cores[at] for at in pair)
        again = cores.count(one) + cores.count(other)
        return (one[:1] + other[:1]).isupper(), -again, len(one) + len(other), pair[1] - pair[0]

    for one, other in sorted(combinations(range(len(cores)), 2), key=rank, reverse=True):
        if not (cores[one] and cores[other]) or cores[one].lower() == cores[other].lower():
            continue
        turned = list(words)
        turned[one] = words[one].replace(cores[one], cores[other])
        turned[other] = words[other].replace(cores[other], cores[one])
        pair = look.request.text, " ".join(turned)
        if _hold_the_same(look.model, _as_fed(look.model, pair)):
            return pair
    for pair in OTHERS:
        fed = _as_fed(look.model, pair)
        if not any(map(look.model.new_words, fed)) and _hold_the_same(look.model, fed):
            return pair
    return look.request.text, " ".join(reversed(words))


def _as_fed(model: Model, pair: WordPair) -> WordPair:
    """Both sentences with a space in front, where a first word would otherwise be another token."""
    spaced = (f" {pair[0]}", f" {pair[1]}")
    if isinstance(model.tokenizer, GPT2Subset):
        return spaced
    needs_it = not _hold_the_same(model, pair) and _hold_the_same(model, spaced)
    return spaced if needs_it else pair


def _hold_the_same(model: Model, pair: WordPair) -> bool:
    """Whether a model reads both sentences, as the same tokens in some order."""
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
        return say("model_positions_switching")
    if LIFTED in runs:
        return say("switching_off_positions")
    words = say("without_positions_without")
    if _is_equal(runs[OFF]):
        words += say("differences_size_come")
    return words


def _read(typed: WordPair, texts: WordPair, text: str, count: int) -> str:
    """What is compared, and how. typed, texts: both sentences as they are written and as they are read; text:
    the visitor's. count: tokens."""
    words = say("number_largest_difference")
    words += say("first_tokens", drawn=DRAWN, count=count) if count > DRAWN else "."
    if typed[0] != text:
        words = say("words_sentence_change", first_typed=typed[0], words=words)
    if texts != typed:
        words += say("both_read_space")
    return plain(words)


def _is_equal(run: Reordered) -> bool:
    """Whether the rows of every token are equal but for rounding, which grows with the values."""
    return run.largest <= EQUAL * float(np.abs(run.first).max())
