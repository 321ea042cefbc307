"""A token's vector: looked up, its nearest ones, the same word in two sentences, and windows over the
text."""

from collections.abc import Sequence
from dataclasses import replace

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
from viz.figures.bars import neighbours_bars
from viz.figures.curves import likeness_lines
from viz.figures.diagrams import sliding_windows
from viz.figures.vectors import look_up, rows_around
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import token_label, visible
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import counted, difference, signed
from viz.shell.controls import pick_token
from viz.shell.pictures import beside_words, chart, look_for, table
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced

LOOK_UP = r"h_{\mathrm{id}}\, E = E_{\mathrm{id}}"
ONE_HOT = r"h_{\mathrm{id}} = (0, \ldots, 0, \underset{\mathrm{id}}{1}, 0, \ldots, 0)"
COSINE = r"\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert \, \lVert v \rVert}"
LISTED = 12


def vector_look_up(seen: Look) -> None:
    """One-hot times table, computed as a product over the whole vocabulary."""
    picture, formula = beside_words(
        "Every row is multiplied by 0, except the framed one, which is multiplied by 1. So the sum "
        "of all rows, at the bottom, is that row: the matrix product only copies."
    )
    with formula:
        place = pick_token(seen.trace.tokens, "tokens-look-up")
        id_, matrix = seen.trace.tokens[place].id, seen.model.embedding
        st.latex(ONE_HOT)
        st.latex(look_up_of(id_, *matrix.shape))
    product = one_hot_product(matrix, id_)
    with picture:
        texts = _texts(seen, rows_around(id_, len(matrix)))
        chart(look_up(matrix, texts, id_=id_, product=product), "tokens-look-up-picture")
        st.caption(_look_up_check(seen, place, product))
    columns = {"one-hot × matrix": product, f"row {id_}": matrix[id_]}
    table(columns, "tokens-look-up", index="dimension")


def nearest(seen: Look) -> None:
    """The tokens of the vocabulary nearest to one of the sentence."""
    picture, formula = beside_words(
        "Tokens that are used in similar ways have vectors that point in similar directions. The "
        "model learned this from text alone."
    )
    with formula:
        place = pick_token(seen.trace.tokens, "tokens-nearest")
        st.latex(COSINE)
    id_, matrix = seen.trace.tokens[place].id, seen.model.embedding
    found = neighbours(matrix, id_, LISTED)
    texts = _texts(seen, [neighbour.id for neighbour in found])
    alike = [neighbour.cosine for neighbour in found]
    with picture:
        chart(neighbours_bars(texts, alike), "tokens-bars")
    usual = signed(f"{cosines(matrix, matrix[id_]).mean():.4f}")
    formula.caption(
        f"Searched among all {len(matrix):,} tokens of the vocabulary. A cosine of 1 means the "
        f"same direction; the mean over the whole vocabulary is {usual}. The embedding table "
        f"does not depend on the sentence: {plain(token_label(seen.trace.tokens[place].text))} has "
        "this one vector everywhere."
    )
    columns = {
        "token": list(map(token_label, texts)),
        "id": [str(neighbour.id) for neighbour in found],
        "cosine": alike,
    }
    table(columns, "tokens-nearest")


def look_up_of(id_: int, vocabulary: int, width: int) -> str:
    return (
        rf"\underset{{1 \times {vocabulary}}}{{h_{{{id_}}}}}\;"
        rf"\underset{{{vocabulary} \times {width}}}{{E}} ="
        rf" \underset{{1 \times {width}}}{{E_{{{id_}}}}}"
    )


def _texts(seen: Look, ids: Sequence[int]) -> list[str]:
    return [piece.spelled for piece in pieces(seen.model.tokenizer.named(list(ids)))]


def _look_up_check(seen: Look, place: int, product: Array) -> str:
    """How far the product lies from the row, and from what this pass really used."""
    row = seen.model.embedding[seen.trace.tokens[place].id]
    factor = np.float32(seen.model.config.d_model**0.5 if seen.model.config.scaled_embedding else 1)
    used = seen.trace.embeddings[place]
    times = f", times √{seen.model.config.d_model}," if factor != 1 else ""
    return (
        f"Check: the product over all {len(seen.model.embedding):,} rows differs from the row by "
        f"at most {difference(float(np.abs(product - row).max()))}, and{times} from the vector "
        f"that the model used in this pass by {difference(float(np.abs(product * factor - used).max()))}."
    )


SECOND = (
    "The dog found the ball near the river",
    "Sam was sad because the cat was too tired to cross the street",
    "Anna met Tom near the old house. The animal was very old",
)
SHORTEST = 3  # letters of a word worth comparing


def two_sentences(seen: Look) -> None:
    """The second sentence, the word, and how alike its vectors are, state by state."""
    picture, choices = st.columns([3, 2], gap="large")
    above = choices.empty()
    look_for(_START, above)
    with choices:
        text = st.text_input(
            "Second sentence",
            _second_for(seen),
            max_chars=TEXT_LIMIT,
            key=f"tokens-second-{hash(seen.request)}",
        )
        try:
            other = traced(replace(seen.request, text=text))
        except ValueError as refusal:
            st.warning(plain(str(refusal)))
            st.latex(COSINE)
            return
        places = _word(seen.trace, other)
        st.latex(COSINE)
    if places is None:
        return
    found = likeness(seen.trace, other, places)
    names = _names(seen.trace)
    look_for(f"{_START} {_what_happens(seen.trace, found.word, places)}", above)
    with picture:
        chart(likeness_lines(found.word, found.others, states=names), "tokens-likeness")
    with choices:
        st.caption(_verdict(seen, other, places, found.word))
    columns: dict[str, object] = {"state": names, "the word": found.word}
    if found.others is not None:
        columns["mean of the other tokens"] = found.others
    table(columns, "tokens-likeness")


def _second_for(seen: Look) -> str:
    """A second sentence to start from: of those at hand the one that shares the longest token;
    else the sentence's own words in the opposite order."""
    text = seen.request.text
    best, longest = " ".join(reversed(text.split())), SHORTEST - 1
    for sentence in SECOND:
        if seen.model.new_words(sentence) or sentence == text:
            continue
        shared = shared_tokens(seen.trace.tokens, seen.model.tokens(sentence))
        length = max((len(token.text.strip()) for token in shared), default=0)
        if length > longest:
            best, longest = sentence, length
    return best


def _word(one: Trace, other: Trace) -> tuple[int, int] | None:
    """Where the chosen word stands in both sentences; None where no token occurs in both."""
    shared = shared_tokens(one.tokens, other.tokens)
    if not shared:
        st.info(
            "No token occurs in both sentences. Use a word of your sentence in the second one. "
            "With byte pairs, a word at the very beginning is a different token from the same word "
            "later."
        )
        return None
    longest = max(range(len(shared)), key=lambda number: len(shared[number].text.strip()))
    chosen = st.selectbox(
        "Word that both sentences contain",
        shared,
        index=longest,
        format_func=lambda token: token_label(token.text, 24),
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
    chosen: int = st.selectbox(
        f"Position in {where}", places, key=f"tokens-place-{where}-{hash(places)}"
    )
    return chosen


def _names(trace: Trace) -> list[str]:
    """The token vector, then the states of the stream: the first with its position added."""
    first, *rest = state_names(trace, trace.source)
    added = "positions" in trace.summands[trace.source]
    return ["token vector", f"{first} + position" if added else first, *rest]


_START = (
    "The first point is the token's embedding. It is the same in both sentences, so the cosine is "
    "1."
)


def _what_happens(trace: Trace, word: Array, places: tuple[int, int]) -> str:
    """What the position did to the cosine, then where it fell and where it rose most."""
    names, here, there = _names(trace), *places
    if "positions" not in trace.summands[trace.source]:
        said = "This model adds no position to it."
    elif here == there:
        said = "Both stand at the same position, so adding the position changes nothing."
    else:
        said = f"Adding the positions takes it to {signed(f'{word[1]:.2f}')}."
    steps = np.diff(word[1:])
    for move, at in (("fall", int(steps.argmin())), ("rise", int(steps.argmax()))):
        before, after = (signed(f"{cosine:.2f}") for cosine in word[at + 1 : at + 3])
        if before != after and (steps[at] > 0) == (move == "rise"):
            said += f" The largest {move} after that: at {names[at + 2]}, from {before} to {after}."
    return (
        f"{said} Where the cosine falls the two vectors move apart; where it rises they become "
        "more alike."
    )


def _verdict(seen: Look, other: Trace, places: tuple[int, int], word: np.ndarray) -> str:
    """The end of the way in numbers, and why a GPT may show no change at all."""
    here, there = places
    label = plain(token_label(seen.trace.tokens[here].text))
    said = (
        f"{label}, at position {here} and at position {there}: from {signed(f'{word[0]:.4f}')} to "
        f"**{signed(f'{word[-1]:.4f}')}** at the last state. The dotted line is the mean cosine of two "
        "different tokens at that state."
    )
    same = [token.id for token in seen.trace.tokens[: here + 1]] == [
        token.id for token in other.tokens[: there + 1]
    ]
    if same and seen.trace.source == "decoder":
        said += (
            " Both sentences are the same up to this word. This model sees only earlier tokens, so "
            "nothing can differ."
        )
    return said


INPUTS = (
    r"\begin{aligned} x_k &= (t_{sk}, \ldots, t_{sk+n-1}) \\"
    r" y_k &= (t_{sk+1}, \ldots, t_{sk+n}) \end{aligned}"
)
DRAWN = 8  # windows at most
LONGEST, WIDEST_STEP = 16, 16


def token_windows(seen: Look) -> None:
    """Sliders for length and stride, the windows, and what each position is to predict."""
    typed = [piece for piece in pieces(seen.trace.tokens) if not piece.token.special]
    texts = [piece.spelled for piece in typed]
    if len(texts) < 2:
        st.info(
            "A window needs at least two tokens: one to read and the next one to predict. "
            "Type a longer sentence."
        )
        return
    picture, choices = beside_words(
        "Below each window is its target: the same tokens shifted by one. The stride is something "
        "else: the distance from one window to the next. If it is smaller than the length, windows "
        "overlap."
    )
    with choices:
        length, stride = _sliders(len(texts))
        found = windows(range(len(texts)), length, stride)
        st.latex(INPUTS)
        st.latex(number_of_windows(len(texts), length, stride, len(found)))
        chosen: int = st.selectbox("Window", range(len(found)), key=f"tokens-window-{len(found)}")
        _pairs(seen.model.tokenizer, found[chosen], typed)
    shown = found[:DRAWN]
    with picture:
        figure = sliding_windows(shown, texts, chosen=chosen if chosen < len(shown) else None)
        chart(figure, "tokens-windows-picture")
        st.caption(_caption(seen, found, len(texts), stride))
    labels = list(map(token_label, texts))
    columns = {
        "starts at": [str(window.start) for window in found],
        "input": [" ".join(labels[place] for place in window.inputs) for window in found],
        "target": [" ".join(labels[place] for place in window.target) for window in found],
    }
    table(columns, "tokens-windows", index="window")


def number_of_windows(tokens: int, length: int, stride: int, found: int) -> str:
    """How many windows fit, in general and with the numbers of one text."""
    return (
        r"\begin{aligned} \#\text{windows} &= \left\lceil \frac{N - n}{s} \right\rceil \\ &="
        rf" \left\lceil \frac{{{tokens} - {length}}}{{{stride}}} \right\rceil = {found}"
        r" \end{aligned}"
    )


def _sliders(count: int) -> tuple[int, int]:
    """Window length and stride; where only one is possible it is said, not offered."""
    longest = min(LONGEST, count - 1)
    if longest == 1:
        st.caption("Two tokens make one window of length 1.")
        return 1, 1
    length = st.slider("Length", 1, longest, min(4, longest), key=f"tokens-length-{longest}")
    widest = min(WIDEST_STEP, count - 1)
    stride = st.slider("Stride", 1, widest, min(2, widest), key=f"tokens-stride-{widest}")
    return length, stride


def _pairs(tokenizer: Tokenizer, window: Window[int], typed: Sequence[Piece]) -> None:
    read = (read_as(tokenizer, typed[window.start : place + 1]) for place in window.inputs)
    frame = pd.DataFrame(
        {
            "after reading": list(map(visible, read)),
            "predict": [token_label(typed[place].spelled) for place in window.target],
        }
    )
    height = min(36 * (len(window.inputs) + 1), 190)
    st.dataframe(sheltered_table(frame), hide_index=True, key="tokens-pairs", height=height)


def read_as(tokenizer: Tokenizer, tokens: Sequence[Piece]) -> str:
    """Tokens as the text that they stand for. Bytes are joined as they are; what has none, a word or a
    part of one, as the tokenizer writes it."""
    if all(piece.token.raw for piece in tokens):
        return spelled(b"".join(piece.token.raw for piece in tokens))
    return tokenizer.decode([piece.token.id for piece in tokens])


def _caption(seen: Look, found: Sequence[Window[int]], count: int, stride: int) -> str:
    length = len(found[0].inputs)
    words = [
        f"Windows of {counted(length, 'token')}, {stride} apart. Neighbouring windows share "
        f"{counted(max(length - stride, 0), 'token')}."
    ]
    if len(found) > DRAWN:
        words.append(f"The picture shows the first {DRAWN} of {len(found):,}; the table has all.")
    unread = count - 1 - (found[-1].start + length)
    if unread:
        words.append(
            "The last token is not a target here: no whole window reaches it."
            if unread == 1
            else f"The last {unread} tokens are not targets here: no whole window reaches them."
        )
    if seen.model.config.shape == "encoder":
        words.append(
            "This model is an encoder, which is not trained to predict next tokens; a GPT is. Its "
            "tokens are used here as an illustration."
        )
    return " ".join(words)
