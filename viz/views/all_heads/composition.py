"""How heads read what earlier ones write, from their matrices: a graph between layers."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.attribution.head_composition import (
    Composition,
    compositions,
    compositions_of,
)
from model.analysis.attribution.head_matrices import head_matrices
from model.analysis.heads.families import heads_of
from model.arithmetic.composition import random_composition
from model.nn.places import Head, layer_label
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.figures.head_tiles import Link, composition_graph
from viz.shell.background import Offer, run_or_offer
from viz.shell.pictures import chart, look_for, table
from viz.state.held import loaded, traced
from viz.state.look import Look
from viz.views.all_heads.choice import name_of
from viz.views.all_heads.runs import CompositionRun, CompositionRuns, CompositionSoFar

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
