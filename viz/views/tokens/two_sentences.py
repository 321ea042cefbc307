"""One word in two sentences: one fixed vector before attention, two contextual ones after it."""

from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis.tokens.embeddings import likeness, places_of, shared_tokens
from model.trace.arrays import Array
from model.trace.trace import Trace
from viz.figures.curves import likeness_lines
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import signed
from viz.shell.pictures import chart, look_for, table
from viz.state.held import traced
from viz.state.look import Look
from viz.state.view import TEXT_LIMIT
from viz.views.tokens.vectors import COSINE

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
