"""A token's vector: looked up, its nearest ones, the same word in two sentences, and windows over the
text."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.tokens.embeddings import (
    Window,
    cosines,
    likeness,
    neighbours,
    one_hot_product,
    places_of,
    shared_tokens,
    windows,
)
from model.run.tokenizers import Piece, Tokenizer, pieces, spelled
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.trace.unproven import NotShownError
from viz.figures.bars import neighbours_bars
from viz.figures.curves import likeness_lines
from viz.figures.diagrams import sliding_windows
from viz.figures.vectors import look_up, rows_around
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import token_label, visible
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import counted, difference, signed
from viz.shell.controls import LISTED, pick_token
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table, refusals
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced

LOOK_UP = r"h_{\mathrm{id}}\, E = E_{\mathrm{id}}"
ONE_HOT = r"h_{\mathrm{id}} = (0, \ldots, 0, \underset{\mathrm{id}}{1}, 0, \ldots, 0)"
COSINE = r"\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert \, \lVert v \rVert}"
NEAREST = 12  # tokens


def vector_look_up(look: Look) -> Panel:
    """One-hot times table, computed as a product over the whole vocabulary."""
    place = pick_token(look.trace.tokens, "tokens-look-up")
    id_, matrix = look.trace.tokens[place].id, look.model.embedding
    vocabulary, width = matrix.shape
    product = one_hot_product(matrix, id_)
    factor = np.float32(width**0.5 if look.model.config.scaled_embedding else 1)
    used = look.trace.embeddings[place]
    times = f", times √{width}," if factor != 1 else ""
    copied, moved = (
        float(np.abs(one - other).max())
        for one, other in ((product, matrix[id_]), (product * factor, used))
    )
    return Panel(
        "tokens-look-up-picture",
        look_for="Every row is multiplied by 0, except the framed one, which is multiplied by 1. So the sum "
        "of all rows, at the bottom, is that row: the matrix product only copies.",
        picture=look_up(
            matrix, _texts(look, rows_around(id_, vocabulary)), id_=id_, product=product
        ),
        beside=[
            Formula(ONE_HOT),
            Formula(
                rf"\underset{{1 \times {vocabulary}}}{{h_{{{id_}}}}}\;"
                rf"\underset{{{vocabulary} \times {width}}}{{E}} ="
                rf" \underset{{1 \times {width}}}{{E_{{{id_}}}}}"
            ),
        ],
        check=Check(
            f"Check: the product over all {vocabulary:,} rows differs from the row by "
            f"at most {difference(copied)}, and{times} from the vector "
            f"that the model used in this pass by {difference(moved)}.",
            copied,
        ),
        table=Table({"one-hot × matrix": product, f"row {id_}": matrix[id_]}, index="dimension"),
    )


def nearest(look: Look) -> Panel:
    """The tokens of the vocabulary nearest to one of the sentence."""
    token, matrix = (
        look.trace.tokens[pick_token(look.trace.tokens, "tokens-nearest")],
        look.model.embedding,
    )
    near = neighbours(matrix, token.id, NEAREST)
    texts = _texts(look, [neighbour.id for neighbour in near])
    alike = [neighbour.cosine for neighbour in near]
    usual = signed(f"{cosines(matrix, matrix[token.id]).mean():.4f}")
    return Panel(
        "tokens-bars",
        look_for="Tokens that are used in similar ways have vectors that point in similar directions. The "
        "model learned this from text alone.",
        picture=neighbours_bars(texts, alike),
        beside=[
            Formula(COSINE),
            Caption(
                f"Searched among all {len(matrix):,} tokens of the vocabulary. A cosine of 1 means the "
                f"same direction; the mean over the whole vocabulary is {usual}. The embedding table "
                f"does not depend on the sentence: {plain(token_label(token.text))} has "
                "this one vector everywhere."
            ),
        ],
        table=Table(
            {
                "token": list(map(token_label, texts)),
                "id": [str(neighbour.id) for neighbour in near],
                "cosine": alike,
            }
        ),
    )


def _texts(look: Look, ids: Sequence[int]) -> list[str]:
    return [piece.spelled for piece in pieces(look.model.tokenizer.named(list(ids)))]


SECOND = (
    "The dog found the ball near the river",
    "Sam was sad because the cat was too tired to cross the street",
    "Anna met Tom near the old house. The animal was very old",
)
SHORTEST = 3  # letters of a word worth comparing


def two_sentences(look: Look) -> Panel:
    """The second sentence, the word, and how alike its vectors are, state by state."""
    key = f"tokens-second-{hash(look.request)}"
    text = st.text_input("Second sentence", _second_for(look), max_chars=TEXT_LIMIT, key=key)
    with refusals():
        other = traced(replace(look.request, text=text))
    places = _word(look.trace, other)
    alike, names = likeness(look.trace, other, places), _names(look.trace)
    columns: dict[str, object] = {"state": names, "the word": alike.word}
    if alike.others is not None:
        columns["mean of the other tokens"] = alike.others
    return Panel(
        "tokens-likeness",
        look_for="The first point is the token's embedding. It is the same in both sentences, so the cosine "
        f"is 1. {_what_happens(look.trace, alike.word, places)}",
        picture=likeness_lines(alike.word, alike.others, states=names),
        beside=[Formula(COSINE), Caption(_verdict(look, other, places, alike.word))],
        table=Table(columns),
    )


def _second_for(look: Look) -> str:
    """A second sentence to start from: of those at hand the one that shares the longest token;
    else the sentence's own words in the opposite order."""
    text = look.request.text
    best, longest = " ".join(reversed(text.split())), SHORTEST - 1
    for sentence in SECOND:
        if look.model.new_words(sentence) or sentence == text:
            continue
        shared = shared_tokens(look.trace.tokens, look.model.tokens(sentence))
        length = max((len(token.text.strip()) for token in shared), default=0)
        if length > longest:
            best, longest = sentence, length
    return best


def _word(one: Trace, other: Trace) -> tuple[int, int]:
    """Where the chosen word stands in both sentences. Refuses where no token occurs in both."""
    shared = shared_tokens(one.tokens, other.tokens)
    if not shared:
        raise NotShownError(
            "No token occurs in both sentences. Use a word of your sentence in the second one. "
            "With byte pairs, a word at the very beginning is a different token from the same word "
            "later."
        )
    longest = max(range(len(shared)), key=lambda number: len(shared[number].text.strip()))
    chosen = st.selectbox(
        "Word that both sentences contain",
        shared,
        index=longest,
        format_func=lambda token: token_label(token.text, LISTED),
        key=f"tokens-word-{hash(shared)}",
    )
    return (
        _place(one, chosen.id, "your sentence"),
        _place(other, chosen.id, "the second sentence"),
    )


def _place(trace: Trace, id_: int, where: str) -> int:
    """Which occurrence of a token is meant; asked only where there are several."""
    places = places_of(trace.tokens, id_)
    if len(places) == 1:
        return places[0]
    key = f"tokens-place-{where}-{hash(places)}"
    chosen: int = st.selectbox(f"Position in {where}", places, key=key)
    return chosen


def _names(trace: Trace) -> list[str]:
    """The token vector, then the states of the stream: the first with its position added."""
    first, *rest = state_names(trace, trace.source)
    added = "positions" in trace.summands[trace.source]
    return ["token vector", f"{first} + position" if added else first, *rest]


def _what_happens(trace: Trace, word: Array, places: tuple[int, int]) -> str:
    """What the position did to the cosine, then where it fell and where it rose most."""
    names, here, there = _names(trace), *places
    if "positions" not in trace.summands[trace.source]:
        words = "This model adds no position to it."
    elif here == there:
        words = "Both stand at the same position, so adding the position changes nothing."
    else:
        words = f"Adding the positions takes it to {signed(f'{word[1]:.2f}')}."
    steps = np.diff(word[1:])
    for move, at in (("fall", int(steps.argmin())), ("rise", int(steps.argmax()))):
        before, after = (signed(f"{cosine:.2f}") for cosine in word[at + 1 : at + 3])
        if before != after and (steps[at] > 0) == (move == "rise"):
            words += (
                f" The largest {move} after that: at {names[at + 2]}, from {before} to {after}."
            )
    return (
        f"{words} Where the cosine falls the two vectors move apart; where it rises they become "
        "more alike."
    )


def _verdict(look: Look, other: Trace, places: tuple[int, int], word: np.ndarray) -> str:
    """The end of the way in numbers, and why a GPT may show no change at all."""
    here, there = places
    label = plain(token_label(look.trace.tokens[here].text))
    words = (
        f"{label}, at position {here} and at position {there}: from {signed(f'{word[0]:.4f}')} to "
        f"**{signed(f'{word[-1]:.4f}')}** at the last state. The dotted line is the mean cosine of two "
        "different tokens at that state."
    )
    before, after = (
        [token.id for token in trace.tokens[: place + 1]]
        for trace, place in ((look.trace, here), (other, there))
    )
    if before == after and look.trace.source == "decoder":
        words += (
            " Both sentences are the same up to this word. This model sees only earlier tokens, so "
            "nothing can differ."
        )
    return words


INPUTS = (
    r"\begin{aligned} x_k &= (t_{sk}, \ldots, t_{sk+n-1}) \\"
    r" y_k &= (t_{sk+1}, \ldots, t_{sk+n}) \end{aligned}"
)
DRAWN = 8  # windows at most
LONGEST, WIDEST_STEP = 16, 16


def token_windows(look: Look) -> Panel:
    """Sliders for length and stride, the windows, and what each position is to predict."""
    typed = [piece for piece in pieces(look.trace.tokens) if not piece.token.special]
    texts = [piece.spelled for piece in typed]
    count = len(texts)
    if count < 2:
        raise NotShownError(
            "A window needs at least two tokens: one to read and the next one to predict. "
            "Type a longer sentence."
        )
    length, stride, only = 1, 1, [Caption("Two tokens make one window of length 1.")]
    if count > 2:  # where only one length is possible it is said, not offered
        longest, widest = min(LONGEST, count - 1), min(WIDEST_STEP, count - 1)
        length = st.slider("Length", 1, longest, min(4, longest), key=f"tokens-length-{longest}")
        stride = st.slider("Stride", 1, widest, min(2, widest), key=f"tokens-stride-{widest}")
        only = []
    all_ = windows(range(count), length, stride)
    chosen: int = st.selectbox("Window", range(len(all_)), key=f"tokens-window-{len(all_)}")
    labels, drawn = list(map(token_label, texts)), all_[:DRAWN]
    return Panel(
        "tokens-windows-picture",
        look_for="Below each window is its target: the same tokens shifted by one. The stride is something "
        "else: the distance from one window to the next. If it is smaller than the length, windows "
        "overlap.",
        picture=sliding_windows(drawn, texts, chosen=chosen if chosen < len(drawn) else None),
        beside=[
            *only,
            Formula(INPUTS),
            Formula(number_of_windows(count, length, stride, len(all_))),
            _pairs(look.model.tokenizer, all_[chosen], typed),
        ],
        below=[Caption(_caption(look, all_, count, stride))],
        table=Table(
            {
                "starts at": [str(window.start) for window in all_],
                "input": [" ".join(labels[place] for place in window.inputs) for window in all_],
                "target": [" ".join(labels[place] for place in window.target) for window in all_],
            },
            index="window",
        ),
    )


def number_of_windows(tokens: int, length: int, stride: int, windows: int) -> str:
    """How many windows fit, in general and with the numbers of one text."""
    return (
        r"\begin{aligned} \#\text{windows} &= \left\lceil \frac{N - n}{s} \right\rceil \\ &="
        rf" \left\lceil \frac{{{tokens} - {length}}}{{{stride}}} \right\rceil = {windows}"
        r" \end{aligned}"
    )


def _pairs(tokenizer: Tokenizer, window: Window[int], typed: Sequence[Piece]) -> Part:
    """What each position of a window has read, and what it is to predict."""
    read = (read_as(tokenizer, typed[window.start : place + 1]) for place in window.inputs)
    frame = pd.DataFrame(
        {
            "after reading": list(map(visible, read)),
            "predict": [token_label(typed[place].spelled) for place in window.target],
        }
    )
    height = min(36 * (len(window.inputs) + 1), 190)
    table = sheltered_table(frame)
    return partial(st.dataframe, table, hide_index=True, key="tokens-pairs", height=height)


def read_as(tokenizer: Tokenizer, tokens: Sequence[Piece]) -> str:
    """Tokens as the text that they stand for. Bytes are joined as they are; what has none, a word or a
    part of one, as the tokenizer writes it."""
    if all(piece.token.raw for piece in tokens):
        return spelled(b"".join(piece.token.raw for piece in tokens))
    return tokenizer.decode([piece.token.id for piece in tokens])


def _caption(look: Look, all_: Sequence[Window[int]], count: int, stride: int) -> str:
    length = len(all_[0].inputs)
    words = [
        f"Windows of {counted(length, 'token')}, {stride} apart. Neighbouring windows share "
        f"{counted(max(length - stride, 0), 'token')}."
    ]
    if len(all_) > DRAWN:
        words.append(f"The picture shows the first {DRAWN} of {len(all_):,}; the table has all.")
    unread = count - 1 - (all_[-1].start + length)
    if unread:
        words.append(
            "The last token is not a target here: no whole window reaches it."
            if unread == 1
            else f"The last {unread} tokens are not targets here: no whole window reaches them."
        )
    if look.model.config.shape == "encoder":
        words.append(
            "This model is an encoder, which is not trained to predict next tokens; a GPT is. Its "
            "tokens are used here as an illustration."
        )
    return " ".join(words)
