"""A head as two matrices over a vocabulary, their singular values, and how heads read what earlier ones
write."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

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
from model.trace.trace import Trace
from viz.elements.one_of import keep_within, one_listed
from viz.figures.head_tiles import Link, composition_graph, singular_curves
from viz.figures.heatmap import Axis, framed, headed, heatmap
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import signed
from viz.notation.words import sentences_of
from viz.shell.background import Offer, Passes, passes_or_offer
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table, refusals
from viz.shell.pictures import TABLED, of_all_pairs
from viz.state.engine import engine
from viz.state.look import Look, loaded, traced
from viz.views.all_heads.choice import head_names, name_of

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("all_heads.matrices")


LOOKS, WRITES, SINGULAR, COMPOSED = "W_Q · W_Kᵀ", "W_V · W_O", "Singular values", "Composition"
LISTED = 12  # largest entries over the vocabulary
_LOOKS = r"\hat e_q\, W_Q W_K^\top\, \hat e_k^\top / \sqrt{d_k}, \quad \hat e = \mathrm{norm}(e)"
_WRITES = r"\hat e_k\, W_V W_O\, \gamma \odot u_t"
_COPYING = r"\text{copying score} = \frac{\sum_i \lambda_i}{\sum_i |\lambda_i|}"
SOURCE = say("elhage_et_al_2021")


@lru_cache(maxsize=32)
def _matrices(request: Request, head: Head) -> HeadMatrices:
    return head_matrices(loaded(request.model), traced(request), *head)


@lru_cache(maxsize=64)
def _of_all_tokens(
    request: Request, head: Head, shown: str, distance: int
) -> tuple[Sequence[Pair], float | None]:
    """The largest entries over the vocabulary, and the copying score of what a head writes."""
    model, trace, matrices = loaded(request.model), traced(request), _matrices(request, head)
    with engine().turn():
        if shown == LOOKS:
            factors = looking(model, trace, matrices, distance=distance, whole=True)
            return factors.largest(LISTED), None
        factors = writing(model, trace, matrices, whole=True)
        copies = Place.named(head[0]).kind != "cross"
        return factors.largest(LISTED), copying_score(factors) if copies else None


@of_all_pairs
def as_matrices(look: Look) -> Panel:
    """One of the four pictures, and what is said of it."""
    names = list(_PICTURES)
    shown = names[one_listed("Matrix", names, "all-heads-matrix")]
    with refusals():  # of a head that is no matrix, or writes to no logit
        return _PICTURES[shown](look)


def _queries_and_keys(look: Look) -> Panel:
    """How much each token of the sentence looks at each, by their vectors alone."""
    matrices = _matrices(look.request, (look.place, look.head))
    queries, keys = look.labels
    distance = 0
    if matrices.turns and len(keys) > 1:
        keep_within("all-heads-before", len(keys))
        label = say("tokens_between_key")
        distance = st.slider(label, 0, len(keys) - 1, key="all-heads-before")
    model, trace = look.model, look.trace
    scores = looking(model, trace, matrices, distance=distance).product
    row, column, same = _largest(scores, queries, keys)
    turned = say("rotary_positions_rotate") if matrices.turns else say("positions_left_out")
    apart = scores_check(model, trace, matrices)
    panel = _over_tokens(scores, Axis("query token", queries), Axis("key token", keys), LOOKS)
    return replace(
        panel,
        look_for=say(
            "token_vectors_alone", row=row, column=column, two=_two(scores.max()), same=same
        ),
        beside=[
            Formula(_LOOKS),
            Caption(say("left_out_biases", vectors=_vectors(look), turned=turned)),
            *_over_vocabulary(look, LOOKS, distance),
        ],
        check=Check(
            say("check_same_maps", apart=apart),
            apart,
        ),
    )


def _values_and_output(look: Look) -> Panel:
    """What each token of the sentence writes towards each, by its vector alone."""
    matrices, (_, keys) = _matrices(look.request, (look.place, look.head)), look.labels
    towards = writing(look.model, look.trace, matrices).product
    outputs = [token.text for token in look.trace.tokens_of("decoder")]
    row, column, same = _largest(towards, keys, outputs)
    final = say("through_last_norm")
    panel = _over_tokens(
        towards, Axis("key token", keys), Axis(say("token_logit"), outputs), WRITES
    )
    return replace(
        panel,
        look_for=say(
            "tokens_full_weight", row=row, column=column, two=_two(towards.max()), same=same
        ),
        beside=[
            Formula(_WRITES),
            Caption(
                say(
                    "u_row_output_matrix",
                    vectors=_vectors(look),
                    final=final * (not look.model.config.norms_sum),
                )
            ),
            *_over_vocabulary(look, WRITES, 0),
        ],
    )


def _over_tokens(values: Wide, rows: Axis, columns: Axis, shown: str) -> Panel:
    """The matrix between the tokens of the sentence."""
    figure = heatmap(
        values,
        rows=rows,
        columns=columns,
        quantity="score" if shown == LOOKS else "value",
        square=True,
    )
    row, column = divmod(int(values.argmax()), values.shape[1])
    framed(figure, [row], [column])  # the largest, which the sentence names
    named = dict(zip(numbered_labels(columns.labels), values.T, strict=True))
    tokens = {"token": [token_label(text) for text in rows.labels]}
    return Panel(
        f"all-heads-matrix-{shown == LOOKS}",
        picture=headed(figure, say("token_vectors_alone_2")),
        table=Table(tokens | named) if max(values.shape) <= TABLED else None,
    )


def _largest(values: Wide, rows: Sequence[str], columns: Sequence[str]) -> tuple[str, str, str]:
    """The tokens of the largest entry, and a sentence on tokens with themselves beside tokens with others."""
    row, column = divmod(int(values.argmax()), values.shape[1])
    same = np.array([[one == other for other in columns] for one in rows])
    means = (
        ""
        if same.all() or not same.any()
        else say(
            "mean_token_itself",
            two=_two(values[same].mean()),
            values_two=_two(values[~same].mean()),
        )
    )
    return bold_token(rows[row]), bold_token(columns[column]), means


def _two(value: float) -> str:
    return signed(f"{value:.2f}")


def _vectors(look: Look) -> str:
    """What the vectors of the formulas are."""
    config = look.model.config
    if not config.norms_input:
        return say("e_token_vector_enters")
    return say("e_token_vector_put") + ", without β" * config.shifts


def _over_vocabulary(look: Look, shown: str, distance: int) -> list[Part]:
    """The largest entries over all tokens, and the copying score; a sentence where there are too many."""
    vocabulary = look.model.config.d_vocab
    if vocabulary**2 > MOST_PAIRS:
        return [
            Caption(
                say(
                    "tokens_largest_entries",
                    look=look.title,
                    vocabulary=vocabulary,
                    most_pairs=int(MOST_PAIRS**0.5),
                )
            )
        ]
    pairs, score = _of_all_tokens(look.request, (look.place, look.head), shown, distance)
    copying: list[Part] = []
    if score is not None:
        copying = [
            Formula(_COPYING),
            say("over_whole_vocabulary", score=score, source=SOURCE),
        ]
    first, second = ("query token", "key token") if shown == LOOKS else ("key token", "logit of")
    named = look.model.tokenizer.named
    frame = pd.DataFrame(
        {
            first: [token_label(token.text) for token in named([pair.row for pair in pairs])],
            second: [token_label(token.text) for token in named([pair.column for pair in pairs])],
            "value": [pair.value for pair in pairs],
        }
    )
    return [
        *copying,
        say("largest_entries", vocabulary=vocabulary),
        partial(
            st.dataframe,
            frame,
            hide_index=True,
            key=f"all-heads-pairs-of-{shown}",
            height=240,
            column_config={"value": st.column_config.NumberColumn(format="%.2f")},
        ),
    ]


def _singular(look: Look) -> Panel:
    matrices = _matrices(look.request, (look.place, look.head))
    looks, writes = singular_values(matrices)
    halves = [
        int(np.searchsorted(np.cumsum(one**2), 0.9 * np.sum(one**2))) + 1 for one in (looks, writes)
    ]
    config, width = look.model.config, matrices.query.shape[1]
    mean = say("subtracted_mean") if config.norm_law.centres else ""
    return Panel(
        "all-heads-singular",
        look_for=say(
            "matrix_most_singular",
            width=width,
            looks=len(looks),
            first_halves=halves[0],
            halves=halves[1],
        ),
        picture=singular_curves(looks.tolist(), writes.tolist()),
        beside=[Caption(say("norm_before_head", mean=mean))] if config.norms_input else (),
        table=Table({"W_Q · W_Kᵀ": looks, "W_V · W_O": writes}, index="number"),
    )


LINES = 16  # of the graph
FEW = 64  # heads whose pairs are all compared; beyond that those of the chosen head are
_PRODUCTS = 10  # of d_model × d_model matrices, about, for each head
CHOSEN, ALL = "The chosen head", "All heads"
_COMPOSED = (
    r"\frac{\| W_{OV}^{\text{earlier}}\, W \|_F}{\| W_{OV}^{\text{earlier}} \|_F\, \| W \|_F},"
    r"\quad W = W_{QK},\ W_{QK}^\top,\ W_{OV}\ \text{for Q, K, V}"
)


@dataclass(frozen=True)
class CompositionSoFar:
    """One head's numbers with the heads it has been compared with."""

    done: int  # heads
    total: int
    ratios: tuple[Composition, ...]


@lru_cache(maxsize=32)
def _composed(request: Request, head: Head | None) -> tuple[Composition, ...]:
    """Those of one head, or of all pairs."""
    model, trace = loaded(request.model), traced(request)
    matrices = (head_matrices(model, trace, *one) for one in heads_of(trace.attention))
    if head is None:
        return tuple(compositions(list(matrices)))
    return tuple(compositions_of(head_matrices(model, trace, *head), matrices))


def compare_one(
    model: "Model", trace: Trace, head: Head, run: Passes[CompositionSoFar]
) -> Iterator[CompositionSoFar]:
    """One head with all others, those of a sub-layer in each turn."""
    chosen = head_matrices(model, trace, *head)
    total, done = len(heads_of(trace.attention)), 0
    ratios: list[Composition] = []
    for attention in trace.attention:
        with run.turn():
            others = (head_matrices(model, trace, *one) for one in heads_of([attention]))
            ratios += compositions_of(chosen, others)
        done += attention.heads
        yield CompositionSoFar(done, total, tuple(ratios))


def _composed_behind(look: Look, count: int) -> tuple[Composition, ...]:
    """Compares the chosen head with all, behind the page; nothing until that is done."""
    head = (look.place, look.head)
    name = name_of(look, head)
    offer = Offer(
        "all-heads-composed",
        say("matrices_multiplied_heads", name=name, count=count),
        say("compare_heads", name=name, count=count),
        "heads",
        "compared",
        count,
        _PRODUCTS * count * float(look.model.config.d_model) ** 3,
    )
    work = partial(compare_one, look.model, look.trace, head)
    run = passes_or_offer((offer.name, look.request, head), work, offer)
    return run.found.ratios if run and run.found and run.complete else ()


def _composition(look: Look) -> Panel:
    """The widest lines between heads, of the chosen one or of all."""
    count = len(heads_of(look.trace.attention))
    if count <= FEW:
        of = (CHOSEN, ALL)[one_listed("Lines of", (CHOSEN, ALL), "all-heads-composed-of")]
        ratios = _composed(look.request, (look.place, look.head) if of == CHOSEN else None)
    elif not (ratios := _composed_behind(look, count)):
        return Panel("all-heads-composed")
    ratios = tuple(sorted(ratios, key=lambda one: -one.ratio))
    base = random_composition(look.model.config.d_model)
    pre = look.model.config.norms_input
    norms = say("norms_before_heads") if pre else say("norms_left_out")
    return Panel(
        "all-heads-composed",
        look_for=_most(look, ratios, base),
        picture=_graph(look, ratios[:LINES]),
        beside=[
            Formula(_COMPOSED),
            Caption(say("matrices_alone_whatever", source=SOURCE, base=base, norms=norms)),
        ],
        table=Table(
            {
                "writes": head_names(look, [one.earlier for one in ratios]),
                "reads": head_names(look, [one.later for one in ratios]),
                "through": [one.reads for one in ratios],
                "ratio": [one.ratio for one in ratios],
                "times random": [one.ratio / base for one in ratios],
            }
        ),
    )


def _graph(look: Look, ratios: Sequence[Composition]) -> go.Figure:
    layers = [attention.name for attention in look.trace.attention]
    links = []
    for one in ratios:
        reads = f"{name_of(look, one.later)} reads {name_of(look, one.earlier)} by {one.reads}"
        earlier, later = ((layers.index(place), head) for place, head in (one.earlier, one.later))
        links.append(Link(earlier, later, one.reads, one.ratio, f"{reads}: {one.ratio:.3f}", reads))
    return composition_graph(
        [layer_label(name) for name in layers],
        max(attention.heads for attention in look.trace.attention),
        links,
        chosen=(layers.index(look.place), look.head),
    )


def _most(look: Look, ratios: Sequence[Composition], base: float) -> str:
    if not ratios:
        return say("other_head_writes")
    most = ratios[0]
    through = {"Q": "queries", "K": "keys", "V": "values"}[most.reads]
    return say(
        "widest_line_reads",
        name_of=name_of(look, most.later),
        look_name_of=name_of(look, most.earlier),
        through=through,
        ratio=most.ratio,
        base_ratio=most.ratio / base,
        value=sum(one.ratio > base for one in ratios),
        ratios=len(ratios),
    )


_PICTURES: dict[str, Callable[[Look], Panel]] = {
    LOOKS: _queries_and_keys,
    WRITES: _values_and_output,
    SINGULAR: _singular,
    COMPOSED: _composition,
}
