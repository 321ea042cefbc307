"""A token's vector: looked up, its nearest ones, the same word in two sentences, and windows over the
text."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis.stream.stream import summed
from model.analysis.tokens.embeddings import (
    cosines,
    neighbours,
    one_hot_product,
    places_of,
    shared_tokens,
    similarity,
)
from model.run.tokenizers import pieces
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed
from viz.figures.bars import neighbours_bars
from viz.figures.curves import likeness_lines
from viz.figures.vectors import look_up, rows_around
from viz.notation.formulas import aligned
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import signed
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED, pick_token
from viz.shell.panel import Caption, Check, Formula, Panel, Table, refusals
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced

say = sentences_of("tokens.vectors")

ONE_HOT = r"h_{\mathrm{id}} = (0, \ldots, 0, \underset{\mathrm{id}}{1}, 0, \ldots, 0)"
COSINE = r"\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert \, \lVert v \rVert}"
NEAREST = 12  # tokens


def vector_look_up(look: Look) -> Panel:
    """One-hot times table, computed as a product over the whole vocabulary."""
    place = pick_token(look.trace.tokens, "tokens-look-up")
    token, matrix = look.trace.tokens[place], look.model.embedding
    id_, (vocabulary, width) = token.id, matrix.shape
    product = one_hot_product(matrix, id_)
    factor = np.float32(width**0.5 if look.model.config.scaled_embedding else 1)
    used = look.trace.embeddings[place]
    times = f", times √{width}," if factor != 1 else ""
    start = summed(look.trace)
    steps: dict[str, Array] = {}
    if factor != 1:
        steps[f"× √{width}"] = used
    if len(start.parts) > 1:
        added = {"positions": f"+ position {place}", "segments": "+ segment"}
        steps |= {added[name]: rows[place] for name, rows in start.parts.items() if name in added}
        steps["= vector"] = start.total[place]
    copied, moved = (
        float(np.abs(one - other).max())
        for one, other in ((product, matrix[id_]), (product * factor, used))
    )
    return Panel(
        "tokens-look-up-picture",
        look_for=say("token_takes_row", token=token.text, id=id_)
        + (say("position_is_added", position=place) if "positions" in start.parts else ""),
        picture=look_up(
            matrix,
            _texts(look, rows_around(id_, vocabulary)),
            id_=id_,
            product=product,
            steps=steps,
        ),
        beside=[
            Formula(ONE_HOT),
            Formula(
                rf"\underset{{1 \times {vocabulary}}}{{h_{{{id_}}}}}\;"
                rf"\underset{{{vocabulary} \times {width}}}{{E}} ="
                rf" \underset{{1 \times {width}}}{{E_{{{id_}}}}}"
            ),
            Formula(_in_numbers(id_, product, steps)),
            Caption(say("token_vocabulary_numbers", vocabulary=vocabulary, width=width)),
        ],
        check=Check(
            say(
                "check_product_over", vocabulary=vocabulary, copied=copied, times=times, moved=moved
            ),
            copied,
        ),
        table=Table(
            {"one-hot × matrix": product, f"row {id_}": matrix[id_]} | steps, index="dimension"
        ),
    )


FIRST = 2  # numbers of a vector that stand in its formula


def _in_numbers(id_: int, product: Array, steps: Mapping[str, Array]) -> str:
    """The first numbers of the row, and of what the sentence makes of it, one below the other."""
    named = {rf"E_{{{id_}}}": product} | {rf"\text{{{name}}}": step for name, step in steps.items()}
    lines = []
    for name, vector in named.items():
        numbers = r",\; ".join(f"{value:.4f}" for value in vector[:FIRST])
        lines.append(rf"{name}&: ({numbers},\; \ldots)")
    return aligned(*lines)


def nearest(look: Look) -> Panel:
    """The tokens of the vocabulary nearest to one of the sentence."""
    token, matrix = (
        look.trace.tokens[pick_token(look.trace.tokens, "tokens-nearest")],
        look.model.embedding,
    )
    near = neighbours(matrix, token.id, NEAREST)
    texts = _texts(look, [neighbour.id for neighbour in near])
    alike = [neighbour.cosine for neighbour in near]
    mean = float(cosines(matrix, matrix[token.id]).mean())
    return Panel(
        "tokens-bars",
        look_for=say(
            "tokens_vector_nearest", matrix=len(matrix), first_texts=texts[0], token=token.text
        ),
        picture=neighbours_bars(texts, alike, mean=mean),
        beside=[
            Formula(COSINE),
            Caption(say("1_means_same_direction", mean=mean)),
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
    say("dog_found_ball_near"),
    say("sam_sad_because"),
    say("anna_met_tom_near"),
)
SHORTEST = 3  # letters of a word worth comparing
PLACES = (
    6  # of a word in each sentence: in a long text all pairs of places would be a list of 20 MB
)


def two_sentences(look: Look) -> Panel:
    """The second sentence, the word, and how alike its vectors are, state by state."""
    key = f"tokens-second-{hash(look.request)}"
    # A second sentence to start from: of those at hand the one that shares the longest token; else
    # the sentence's own words in the opposite order.
    text = look.request.text
    second, longest = " ".join(reversed(text.split())), SHORTEST - 1
    for sentence in SECOND:
        if look.model.new_words(sentence) or sentence == text:
            continue
        shared = shared_tokens(look.trace.tokens, look.model.tokens(sentence))
        length = max((len(token.text.strip()) for token in shared), default=0)
        if length > longest:
            second, longest = sentence, length
    text = st.text_input("Second sentence", second, max_chars=TEXT_LIMIT, key=key, width=440)
    with refusals():
        other = traced(replace(look.request, text=text))
    places = _word(look.trace, other)
    alike, names = similarity(look.trace, other, places), _names(look.trace)
    columns: dict[str, object] = {"state": names, "the word": alike.word}
    if alike.others is not None:
        columns[say("mean_other_tokens")] = alike.others
    return Panel(
        "tokens-likeness",
        look_for=say(
            "word_vector_both", what_happens=_what_happens(look.trace, alike.word, places)
        ),
        picture=likeness_lines(alike.word, alike.others, states=names),
        beside=[Formula(COSINE), Caption(_verdict(look, other, places, alike.word))],
        table=Table(columns),
    )


def _word(one: Trace, other: Trace) -> tuple[int, int]:
    """Where the chosen word stands in both sentences. Refuses where no token occurs in both."""
    shared = shared_tokens(one.tokens, other.tokens)
    if not shared:
        raise NotShownError(
            "No token occurs in both sentences. Use a word of your sentence in the second one. "
            "With byte pairs, a word at the very beginning is a different token from the same word "
            "later."
        )
    pairs = [
        (token.text, here, there)
        for token in shared
        for here in places_of(one.tokens, token.id)[:PLACES]
        for there in places_of(other.tokens, token.id)[:PLACES]
    ]
    longest = max(range(len(pairs)), key=lambda number: len(pairs[number][0].strip()))
    names = [f"{token_label(text, LISTED)}, {here} and {there}" for text, here, there in pairs]
    key = f"tokens-word-{hash(tuple(names))}"
    _, here, there = pairs[one_listed(say("word_positions"), names, key, first=longest)]
    return here, there


def _names(trace: Trace) -> list[str]:
    """The token vector, then the states of the stream: the first with its position added."""
    first, *rest = state_names(trace, trace.source)
    added = "positions" in trace.summands[trace.source]
    return ["token vector", f"{first} + position" if added else first, *rest]


def _what_happens(trace: Trace, word: Array, places: tuple[int, int]) -> str:
    """What the position did to the cosine, then where it fell and where it rose most."""
    names, here, there = _names(trace), *places
    if "positions" not in trace.summands[trace.source]:
        words = say("model_adds_position")
    elif here == there:
        words = say("both_stand_same")
    else:
        words = say("adding_positions_takes", word=word[1])
    steps = np.diff(word[1:])
    for move, at in (("fall", int(steps.argmin())), ("rise", int(steps.argmax()))):
        before, after = (signed(f"{cosine:.2f}") for cosine in word[at + 1 : at + 3])
        if before != after and (steps[at] > 0) == (move == "rise"):
            words += say(
                "largest_after", move=move, names=names[at + 2], before=before, after=after
            )
    return words


def _verdict(look: Look, other: Trace, places: tuple[int, int], word: np.ndarray) -> str:
    """The end of the way in numbers, and why a GPT may show no change at all."""
    here, there = places
    label = plain(token_label(look.trace.tokens[here].text))
    words = say(
        "position_position_last",
        label=label,
        here=here,
        there=there,
        first_word=word[0],
        last_word=word[-1],
    )
    before, after = (
        [token.id for token in trace.tokens[: place + 1]]
        for trace, place in ((look.trace, here), (other, there))
    )
    if before == after and look.trace.source == "decoder":
        words += say("both_sentences_same")
    return words
