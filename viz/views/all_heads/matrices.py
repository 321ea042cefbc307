"""A head as two matrices over a vocabulary, their singular values, and how heads read what earlier ones
write."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.attribution.head_matrices import (
    MOST_PAIRS,
    Composition,
    HeadMatrices,
    Pair,
    compositions,
    compositions_of,
    copying_score,
    head_matrices,
    looking,
    scores_check,
    singular_values,
    writing,
)
from model.analysis.heads.statistics import heads_of
from model.arithmetic.composition import random_composition
from model.nn.places import Head, Place, layer_label
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.records import Token
from model.trace.trace import Trace
from viz.elements.one_of import keep_within, one_of
from viz.figures.head_tiles import Link, composition_graph, singular_curves
from viz.figures.heatmap import Axis, headed, heatmap
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import difference, signed
from viz.notation.theme import QuantityName
from viz.shell.background import Offer, run_or_offer
from viz.shell.pictures import TABLED, chart, look_for, of_all_pairs, table
from viz.state.engine import engine
from viz.state.look import Look, labels_of, loaded, traced
from viz.views.all_heads.choice import (
    CompositionRun,
    CompositionRuns,
    CompositionSoFar,
    beside_chosen_head,
    name_of,
)

if TYPE_CHECKING:
    from model.run.model import Model


LINES = 16  # of the graph
FEW = 64  # heads whose pairs are all compared; beyond that those of the chosen head are
_PRODUCTS = 10  # of d_model × d_model matrices, about, for each head
CHOSEN, ALL = "The chosen head", "All heads"
_COMPOSED = (
    r"\frac{\| W_{OV}^{\text{earlier}}\, W \|_F}{\| W_{OV}^{\text{earlier}} \|_F\, \| W \|_F},"
    r"\quad W = W_{QK},\ W_{QK}^\top,\ W_{OV}\ \text{for Q, K, V}"
)
SOURCE = "Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”"


@lru_cache(maxsize=32)
def _composed(request: Request, head: Head | None) -> tuple[Composition, ...]:
    """Those of one head, or of all pairs."""
    model, trace = loaded(request.model), traced(request)
    made = (head_matrices(model, trace, *one) for one in heads_of(trace.attention))
    if head is None:
        return tuple(compositions(list(made)))
    return tuple(compositions_of(head_matrices(model, trace, *head), made))


@st.cache_resource
def runs() -> CompositionRuns:
    """The runs of this process, shared by all visitors."""
    return CompositionRuns()


def compare_one(
    model: "Model", trace: Trace, head: Head, run: CompositionRun
) -> Iterator[CompositionSoFar]:
    """One head with all others, those of a sub-layer in each turn."""
    chosen = head_matrices(model, trace, *head)
    total, done = len(heads_of(trace.attention)), 0
    found: list[Composition] = []
    for attention in trace.attention:
        with run.turn():
            others = (head_matrices(model, trace, *one) for one in heads_of([attention]))
            found += compositions_of(chosen, others)
        done += attention.heads
        yield CompositionSoFar(done, total, tuple(found))


def _run_or_offer(seen: Look, count: int) -> Sequence[Composition] | None:
    """Compares the chosen head with all, behind the page; None until that is done."""
    head = (seen.place, seen.head)
    name = name_of(seen, head)
    offer = Offer(
        "all-heads-composed",
        f"The matrices of {name} are multiplied with those of all {count} heads.",
        f"Compare {name} with all {count} heads",
        "heads",
        "compared",
        count,
        _PRODUCTS * count * float(seen.model.config.d_model) ** 3,
    )
    work = partial(compare_one, seen.model, seen.trace, head)
    run = run_or_offer(runs(), (seen.request, head), work, offer)
    return run.found.ratios if run and run.found and run.complete else None


def composition(seen: Look, picture: DeltaGenerator, words: DeltaGenerator) -> None:
    """The widest lines between heads, of the chosen one or of all."""
    count = len(heads_of(seen.trace.attention))
    found: Sequence[Composition] | None
    with words:
        said = st.container()
        if count <= FEW:
            of = one_of("Lines of", (CHOSEN, ALL), "all-heads-composed-of", quiet=True)
            found = _composed(seen.request, (seen.place, seen.head) if of == CHOSEN else None)
        else:
            of = CHOSEN
            with picture:
                found = _run_or_offer(seen, count)
    if found is None:
        return
    found = sorted(found, key=lambda one: -one.ratio)
    base = random_composition(seen.model.config.d_model)
    with picture:
        _graph(seen, found[:LINES])
    look_for(_most(seen, found, base), said)
    st.latex(_COMPOSED)
    pre = seen.model.config.norms_input
    norms = "the norms before heads are folded in" if pre else "norms are left out"
    st.caption(
        f"From the matrices alone, whatever the sentence ({SOURCE}). Random matrices of this width give "
        f"about 1/√d_model = {base:.3f}. A large number says what a head could read, not that it does: "
        f"to see that, leave the earlier head out. Here {norms}; feed-forward layers between are left out."
    )
    columns = {
        "writes": [name_of(seen, one.earlier) for one in found],
        "reads": [name_of(seen, one.later) for one in found],
        "through": [one.reads for one in found],
        "ratio": [one.ratio for one in found],
        "times random": [one.ratio / base for one in found],
    }
    table(columns, f"all-heads-composed-{of}")


def _graph(seen: Look, found: Sequence[Composition]) -> None:
    names = [attention.name for attention in seen.trace.attention]
    links = [
        Link(
            (names.index(one.earlier[0]), one.earlier[1]),
            (names.index(one.later[0]), one.later[1]),
            one.reads,
            one.ratio,
            f"{name_of(seen, one.later)} reads {name_of(seen, one.earlier)} by {one.reads}: {one.ratio:.3f}",
            f"{name_of(seen, one.later)} reads {name_of(seen, one.earlier)} by {one.reads}",
        )
        for one in found
    ]
    figure = composition_graph(
        [layer_label(name) for name in names],
        max(attention.heads for attention in seen.trace.attention),
        links,
        chosen=(names.index(seen.place), seen.head),
    )
    chart(figure, f"all-heads-composition-{seen.place}-{seen.head}-{len(links)}")


def _most(seen: Look, found: Sequence[Composition], base: float) -> str:
    if not found:
        return "No other head writes what this one reads, and none reads what it writes."
    most = found[0]
    through = {"Q": "queries", "K": "keys", "V": "values"}[most.reads]
    return (
        f"The widest line: {name_of(seen, most.later)} reads {name_of(seen, most.earlier)} through its "
        f"{through}, {most.ratio:.3f}, {most.ratio / base:.1f} times what random matrices give. "
        f"{sum(one.ratio > base for one in found)} of {len(found)} numbers lie above that."
    )


LOOKS, WRITES, SINGULAR, COMPOSED = "W_Q · W_Kᵀ", "W_V · W_O", "Singular values", "Composition"
LISTED = 12  # largest entries over the vocabulary
_LOOKS = r"\hat e_q\, W_Q W_K^\top\, \hat e_k^\top / \sqrt{d_k}, \quad \hat e = \mathrm{norm}(e)"
_WRITES = r"\hat e_k\, W_V W_O\, \gamma \odot u_t"
_COPYING = r"\text{copying score} = \frac{\sum_i \lambda_i}{\sum_i |\lambda_i|}"


@lru_cache(maxsize=32)
def _matrices(request: Request, head: Head) -> HeadMatrices:
    return head_matrices(loaded(request.model), traced(request), *head)


@lru_cache(maxsize=64)
def _of_all_tokens(
    request: Request, head: Head, shown: str, distance: int
) -> tuple[Sequence[Pair], float | None]:
    """The largest entries over the vocabulary, and the copying score of what a head writes."""
    model, trace, made = loaded(request.model), traced(request), _matrices(request, head)
    with engine().turn(lambda place: None):
        if shown == LOOKS:
            return looking(model, trace, made, distance=distance, whole=True).largest(LISTED), None
        factors = writing(model, trace, made, whole=True)
        copies = Place.named(head[0]).kind != "cross"
        return factors.largest(LISTED), copying_score(factors) if copies else None


@of_all_pairs
def as_matrices(seen: Look) -> None:
    """One of the four pictures, beside the chosen head's weights."""
    with beside_chosen_head(seen, title="In this sentence") as words:
        with st.container(gap="xsmall", key="above-the-picture"):
            shown = one_of(
                "Picture", (LOOKS, WRITES, SINGULAR, COMPOSED), "all-heads-matrix", quiet=True
            )
            picture = st.container()
        try:
            if shown == COMPOSED:
                composition(seen, picture, words)
                return
            made = _matrices(seen.request, (seen.place, seen.head))
            (_singular if shown == SINGULAR else _over_tokens)(seen, made, shown, picture, words)
        except ValueError as refusal:  # of a head that is no matrix, or writes to no logit
            picture.info(plain(str(refusal)))


def _over_tokens(
    seen: Look, made: HeadMatrices, shown: str, picture: DeltaGenerator, words: DeltaGenerator
) -> None:
    """The matrix between the tokens of the sentence, and its largest entries over the vocabulary."""
    queries, keys = labels_of(seen.trace, seen.attention)
    looks, distance = shown == LOOKS, 0
    if looks and made.turns and len(keys) > 1:
        keep_within("all-heads-before", len(keys))
        distance = st.slider(
            "Tokens between the key and the query after it",
            0,
            len(keys) - 1,
            key="all-heads-before",
        )
    model, trace = seen.model, seen.trace
    found = (
        looking(model, trace, made, distance=distance) if looks else writing(model, trace, made)
    ).product
    outputs = [token.text for token in trace.tokens_of("decoder")]
    rows, columns = (
        (Axis("query token", queries), Axis("key token", keys))
        if looks
        else (Axis("key token", keys), Axis("token of the logit", outputs))
    )
    quantity: QuantityName = "score" if looks else "value"
    with picture:
        figure = heatmap(found, rows=rows, columns=columns, quantity=quantity, square=True)
        chart(
            headed(figure, "From the token vectors alone"),
            f"all-heads-matrix-{looks}-{seen.place}-{seen.head}",
        )
    with words:
        look_for(_largest(found, rows.labels, columns.labels, looks))
        st.latex(_LOOKS if looks else _WRITES)
    st.caption(_left_out(seen, made, looks))
    if looks:
        st.caption(
            "Check: the same maps, with their biases and positions, give the recorded scores of this "
            "head from the recorded states; the largest difference is "
            f"{difference(scores_check(model, trace, made))}."
        )
    _over_vocabulary(seen, shown, distance)
    if max(found.shape) <= TABLED:
        named = dict(zip(numbered_labels(columns.labels), found.T, strict=True))
        tokens = {"token": [token_label(text) for text in rows.labels]}
        table(tokens | named, f"all-heads-matrix-{looks}")


def _largest(found: Wide, rows: Sequence[str], columns: Sequence[str], looks: bool) -> str:
    """The largest entry, and tokens with themselves beside tokens with others."""
    row, column = divmod(int(found.argmax()), found.shape[1])
    one, other = bold_token(rows[row]), bold_token(columns[column])
    same = np.array([[one == other for other in columns] for one in rows])
    said = (
        f"By the token vectors alone {one} scores {other} highest: {_two(found.max())}."
        if looks
        else f"Of these tokens {one}, with full weight on it, writes most towards {other}: "
        f"{_two(found.max())}."
    )
    if same.all() or not same.any():
        return said
    return (
        f"{said} The mean of a token with itself is {_two(found[same].mean())}, with another one "
        f"{_two(found[~same].mean())}."
    )


def _two(value: float) -> str:
    return signed(f"{value:.2f}")


def _left_out(seen: Look, made: HeadMatrices, looks: bool) -> str:
    config = seen.model.config
    norm = (
        "e is a token's vector, put through the head's norm as if it were alone in the stream"
        + (", without β" if config.shifts else "")
        if config.norms_input
        else "e is a token's vector as it enters the stream; norms of layers between are left out"
    )
    if not looks:
        final = (
            ", through the last norm's γ and without its division" if not config.norms_sum else ""
        )
        return (
            f"{norm}. u is the row of the output matrix{final}: so the numbers can be compared with one "
            "another, but they are not logits. Left out: biases, and whatever other layers add or make of it."
        )
    turned = (
        " Rotary positions rotate both; here the key stands the chosen number of tokens before the query. "
        "At 0 the two rotations cancel."
        if made.turns
        else " Positions are left out."
    )
    return f"{norm}. Left out: biases, and whatever earlier layers add.{turned}"


def _over_vocabulary(seen: Look, shown: str, distance: int) -> None:
    """The largest entries over all tokens, and the copying score; a sentence where there are too many."""
    vocabulary = seen.model.config.d_vocab
    if vocabulary**2 > MOST_PAIRS:
        st.caption(
            f"{plain(seen.title)} has {vocabulary:,} tokens. The largest entries over the whole "
            f"vocabulary are computed for up to {int(MOST_PAIRS**0.5):,}."
        )
        return
    pairs, score = _of_all_tokens(seen.request, (seen.place, seen.head), shown, distance)
    if score is not None:
        st.latex(_COPYING)
        st.markdown(
            f"Over the whole vocabulary the copying score is **{signed(f'{score:+.2f}')}**: 1 where "
            "every direction of tokens raises its own logits, −1 where it lowers them. λ are the "
            f"eigenvalues of the matrix ({SOURCE})."
        )
    rows = _texts(seen, [pair.row for pair in pairs])
    columns = _texts(seen, [pair.column for pair in pairs])
    first, second = ("query token", "key token") if shown == LOOKS else ("key token", "logit of")
    st.markdown(f"The largest of all {vocabulary:,} × {vocabulary:,} entries:")
    frame = {first: rows, second: columns, "value": [pair.value for pair in pairs]}
    st.dataframe(
        pd.DataFrame(frame), hide_index=True, key=f"all-heads-pairs-of-{shown}", height=240,
        column_config={"value": st.column_config.NumberColumn(format="%.2f")},
    )  # fmt: skip


def _texts(seen: Look, ids: Sequence[int]) -> list[str]:
    named: Sequence[Token] = seen.model.tokenizer.named(ids)
    return [token_label(token.text) for token in named]


def _singular(
    seen: Look, made: HeadMatrices, shown: str, picture: DeltaGenerator, words: DeltaGenerator
) -> None:
    looks, writes = singular_values(made)
    with picture:
        figure = singular_curves(looks.tolist(), writes.tolist())
        chart(figure, f"all-heads-singular-{seen.place}-{seen.head}")
    halves = [
        int(np.searchsorted(np.cumsum(one**2), 0.9 * np.sum(one**2))) + 1 for one in (looks, writes)
    ]
    look_for(
        f"Each matrix is {made.query.shape[1]} × {made.query.shape[1]} but has at most {len(looks)} singular "
        f"values above 0, one for each dimension of the head. Nine tenths of the sum of squares are in "
        f"the first {halves[0]} of W_Q · W_Kᵀ and the first {halves[1]} of W_V · W_O: the fewer, the fewer "
        "directions of the stream the head reads or writes.",
        words,
    )
    if seen.model.config.norms_input:
        mean = " and the subtracted mean" if seen.model.config.norm_law.centres else ""
        st.caption(f"The norm before the head is folded in: its γ{mean}.")
    table({"W_Q · W_Kᵀ": looks, "W_V · W_O": writes}, f"all-heads-{shown}", index="number")
