"""What the edges of a head carry: the lengths of what they write, what they add to a logit, and the walk from
the chosen cell to the head that wrote its score."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from model.analysis.heads.contributions import parts_of_logit
from model.nn.places import Head
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.elements.plot import plot
from viz.figures.bars import edge_bars, edge_lengths
from viz.figures.heatmap import NARROW, weights_of_head
from viz.notation.head_formulas import EDGE, EDGE_BEFORE
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import part_name
from viz.notation.numbers import agreeing, counted, difference, sign_of_sum, signed
from viz.saving.save import save_figure
from viz.shell.frame import frame
from viz.shell.model_picker import say_encoder
from viz.shell.pictures import chart, look_for, of_all_pairs, readout_of, table
from viz.state.look import Look, labels_of
from viz.state.session import change_view, control, current

if TYPE_CHECKING:
    from model.analysis.attribution.score_parts import EdgeValues


_WALK = "walk-of-scores"  # session state: what was read, and the cells before the chosen one
_LISTED = 24  # characters of a token in a list


class Cell(NamedTuple):
    """A query and a key in one head."""

    place: str
    head: int
    query: int
    key: int


def chosen_cell(seen: Look) -> Cell:
    """The view's cell, or the nearest that this run has."""
    queries, keys = seen.labels
    clamped = current().selection.clamped(
        heads=seen.attention.heads, queries=len(queries), keys=len(keys)
    )
    change_view(current().at(clamped))
    return Cell(seen.place, clamped.head, clamped.query, clamped.key)


def choose_cell(seen: Look) -> None:
    """The query and the key as two lists."""
    for box, name, texts in zip(st.columns(2), ("query", "key"), seen.labels, strict=True):
        labels = numbered_labels(texts, _LISTED)
        with box:
            st.selectbox(
                name.capitalize(),
                range(len(labels)),
                format_func=labels.__getitem__,
                **control(name, "cell"),
            )


def named(trace: Trace, cell: Cell) -> str:
    """L1H7 · ·Tom → ·Hill"""
    queries, keys = labels_of(trace, trace.find(cell.place))
    tokens = f"{token_label(queries[cell.query], 14)} → {token_label(keys[cell.key], 14)}"
    head = part_name(f"{cell.place}.{cell.head}")
    return f"{head} · {tokens}"


def follow(seen: Look, head: Head, query: int) -> None:
    """Opens a head on its own cell: this query, and the key whose edge carries most to it."""
    from model.analysis import edge_values  # imports torch: pages are drawn first

    before = chosen_cell(seen)
    key = int(edge_values(seen.model, seen.trace, *head).carries_most[query])
    st.session_state[_WALK] = (_read(seen), (*_cells(seen), before))
    _open(Cell(*head, query, key))


def way_here(seen: Look) -> None:
    """The cells that led here, each a way back; nothing where the reader has not followed a part."""
    cells = _cells(seen)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="walk-of-scores"
    ):
        for number, cell in enumerate(cells):
            st.button(
                f"← {plain(named(seen.trace, cell))}",
                key=f"walk-{number}",
                on_click=_go_back,
                args=(seen, number),
            )
        st.markdown(f"**{plain(named(seen.trace, chosen_cell(seen)))}**", width="content")


def _go_back(seen: Look, number: int) -> None:
    cells = _cells(seen)
    st.session_state[_WALK] = (_read(seen), cells[:number])
    _open(cells[number])


def _cells(seen: Look) -> tuple[Cell, ...]:
    read, cells = st.session_state.get(_WALK, (None, ()))
    kept: tuple[Cell, ...] = cells if read == _read(seen) else ()
    return kept


def _read(seen: Look) -> tuple[str, str, str | None]:
    """What the model reads: cells of another text lead nowhere here."""
    return seen.request.model, seen.request.text, seen.request.target


def _open(cell: Cell) -> None:
    change_view(replace(current(), **cell._asdict()))


OFFERED = 8  # likeliest next tokens
Row = NDArray[np.float64]


@dataclass(frozen=True)
class ChosenLogit:
    """The logit that is taken apart, or how far it lies above another one."""

    token: int
    against: int | None
    name: str  # as Markdown may show it
    value: float  # the model's own


def choose_logit(seen: Look, cell: Cell) -> ChosenLogit:
    """A next token, the likeliest to begin with, and one that it is held against, or none."""
    logits = seen.trace.require_prediction().after(cell.query)
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    own = [token.id for token in seen.trace.tokens_of("decoder")]
    ids = list(dict.fromkeys([*likely, *own]))
    labels = [token_label(token.text, 24) for token in seen.model.tokenizer.named(ids)]
    names = [
        f"{label} (logit {_number(logits[id_])})" for label, id_ in zip(labels, ids, strict=True)
    ]
    key = f"edges-{hash(tuple(own))}"
    place = one_listed("Next token", names, f"{key}-token")
    other = one_listed("Rather than", ["no other: its logit alone", *names], f"{key}-against") - 1
    name = f"**{plain(labels[place])}**"
    value = float(logits[ids[place]])
    if other < 0:
        return ChosenLogit(ids[place], None, f"The logit of {name}", value)
    against = ids[other]
    return ChosenLogit(
        ids[place],
        against,
        f"The logit of {name} above that of **{plain(labels[other])}**",
        value - float(logits[against]),
    )


def say_logit(seen: Look, cell: Cell, chosen: ChosenLogit, added: Row, count: int) -> None:
    """What the head's edges add, the other heads and everything else; their sum beside the model's own.

    count: of the edges that the mask leaves.
    """
    here = (cell.place, cell.head)
    sums = {"this": 0.0, "heads": 0.0, "rest": 0.0}
    for token, sign in ((chosen.token, 1.0), (chosen.against, -1.0)):
        if token is None:
            continue
        for part in parts_of_logit(seen.model, seen.trace, cell.query, token):
            which = "rest" if part.kind != "head" else "heads"
            which = "this" if (part.name, part.head) == here else which
            sums[which] += sign * part.effect
    head = plain(part_name(f"{cell.place}.{cell.head}"))
    queries, keys = ([plain(token_label(text)) for text in texts] for texts in seen.labels)
    most = int(np.abs(added).argmax())
    largest = (
        f"; the one that counts most is that to **{keys[most]}** at position {most}: "
        f"{_number(added[most], '+')}"
    )
    look_for(
        f"{chosen.name}, after **{queries[cell.query]}**, is {_number(chosen.value)}. The edges of {head} "
        f"add **{_number(added.sum(), '+')}**{largest if count > 1 else ''}."
    )
    total = float(added.sum()) + sums["heads"] + sums["rest"]
    together, recorded = agreeing(total, chosen.value)
    decimals = len(recorded.partition(".")[2])
    parts = [_number(one, "+", decimals) for one in (added.sum(), sums["heads"], sums["rest"])]
    st.caption(
        f"Check: {counted(count, 'edge')} {parts[0]}, all other heads {parts[1]}, everything else "
        f"{parts[2]}: together {sign_of_sum(parts, together)} {together}. The model's own is {recorded}, a "
        f"difference of {difference(abs(total - chosen.value))}. The edges differ from their head's part by "
        f"{difference(abs(float(added.sum()) - sums['this']))}. All pass through the norms with their "
        "recorded statistics; what an edge changes in later layers is counted there."
    )


def _number(value: float, sign: str = "", decimals: int = 2) -> str:
    return signed(f"{value:{sign if round(value, decimals) else ''}z.{decimals}f}")


ROW, LOGIT, HEAD = "One row", "In a logit", "The whole head"
BARS = 24  # keys that are drawn
RESTS = 0.5  # of a row's weight: with more, what the first token carries is told


@of_all_pairs
def edges(seen: Look) -> None:
    """The chosen row's edges by length or by what they add to a logit, or all edges of the head."""
    from model.analysis import edge_values  # imports torch: pages are drawn first

    cell = chosen_cell(seen)
    frame().follow_head()
    through = seen.has_output
    edge = edge_values(seen.model, seen.trace, cell.place, cell.head, through_output=through)
    picture, beside = st.columns([3, 2], gap="large")
    with picture:
        drawn = st.container()
        shown = one_of("Picture", (ROW, LOGIT, HEAD), "edges-as", quiet=True)
    with beside:
        st.markdown(
            "An **edge** is what one token hands to another: its weight times its value, through W_O."
        )
        if not through:
            st.info(_why_before(seen))
        choose_cell(seen)
    if shown == HEAD:
        _whole_head(seen, cell, edge, (drawn, beside))
    elif shown == ROW:
        with drawn:
            _bars(seen, cell, edge.weights[cell.query], edge.norms[cell.query])
        with beside:
            _say_row(seen, cell, edge)
    else:
        _in_a_logit(seen, cell, edge, (drawn, beside))
    readout_of(seen.attention, cell.head, *seen.labels)
    if shown != LOGIT:
        _check_row(seen, cell, edge)
    st.latex(EDGE if through else EDGE_BEFORE)
    st.markdown(
        "A head's output at a token is the sum of its edges, and each writes a vector of its own to the "
        "stream. A large weight on a value that is short after W_O carries little (Kobayashi et al. 2020)."
    )


def _why_before(seen: Look) -> str:
    """Why the lengths are those before W_O."""
    why = seen.model.unproven["output"]
    said = why if why.endswith(".") else f"W_O is not proven here, because {why}."
    return f"{plain(said)} So the lengths here are those of weight · value, before W_O."


def _bars(
    seen: Look, cell: Cell, weights: Row, carried: Row, *, of_logit: str | None = None
) -> None:
    """Two bars a key, the weight and what the edge carries; a click chooses the key."""
    _, keys = seen.labels
    rank = np.maximum(
        weights / (weights.max() or 1), np.abs(carried) / (np.abs(carried).max() or 1)
    )
    open_keys = _open_keys(seen, cell, weights)
    largest = open_keys[np.argsort(-rank[open_keys], kind="stable")[:BARS]]
    listed = np.sort(largest) if len(largest) else np.array([cell.key])
    title = "length" if of_logit is None else "adds to the logit"
    figure = edge_bars(
        [keys[key] for key in listed],
        weights[listed],
        carried[listed],
        title=title,
        is_signed=of_logit is not None,
    )

    def choose(number: int) -> None:
        change_view(replace(current(), key=int(listed[number])))

    name = f"edges-{'-'.join(map(str, cell))}-{of_logit}"
    plot(figure, name, alt=f"The weight of each key, and beside it: {title}.", clicked=choose)
    save_figure(lambda: figure, "edges")
    if len(open_keys) > len(listed):
        st.caption(
            f"The {len(listed)} largest of {len(open_keys):,} edges, in the order of the text."
        )
    table(
        {
            "key": [numbered_labels(keys)[key] for key in open_keys],
            "weight": weights[open_keys],
            title: carried[open_keys],
        },
        f"edges-{title}",
    )


def _open_keys(seen: Look, cell: Cell, weights: Row) -> NDArray[np.intp]:
    """The keys of the row that are not masked, or get weight all the same: a mask value may leave some."""
    return np.flatnonzero(_allowed(seen, cell) | (weights > 0))


def _allowed(seen: Look, cell: Cell) -> NDArray[np.bool_]:
    mask = seen.attention.mask_of(cell.head)
    count = len(seen.labels[1])
    return np.ones(count, np.bool_) if mask is None else mask[cell.query]


def _say_row(seen: Look, cell: Cell, edge: "EdgeValues") -> None:
    """Whether the largest weight carries the longest vector; and whether the first token rests the head."""
    weights, carried = edge.weights[cell.query], edge.norms[cell.query]
    names = [f"**{plain(token_label(text))}**" for text in seen.labels[1]]
    heavy, long = int(weights.argmax()), int(carried.argmax())
    keys = _open_keys(seen, cell, weights)
    if not carried.any():
        look_for("No edge of this row carries anything.")
    elif len(keys) == 1:
        look_for(
            f"This row has one edge, to {names[heavy]}: its weight is {weights[heavy]:.2f}, and it carries a "
            f"vector of length {carried[heavy]:.2f}."
        )
    elif heavy == long:
        look_for(
            f"{names[heavy]} has the largest weight of this row, {weights[heavy]:.2f}, and its edge "
            f"carries the longest vector: its length is {carried[heavy]:.2f}."
        )
    else:
        look_for(
            f"The largest weight of this row, {weights[heavy]:.2f}, is that of {names[heavy]} at position "
            f"{heavy}; its edge carries a vector of length {carried[heavy]:.2f}. The longest, "
            f"**{carried[long]:.2f}**, comes from {names[long]} at position {long}, with a weight of "
            f"{weights[long]:.2f}."
        )
    lengths = np.linalg.norm(edge.written, axis=-1)
    others = np.flatnonzero(_allowed(seen, cell))[1:]
    share = float(carried[0] / carried.sum()) if carried.any() else 0.0
    if len(others) and weights[0] >= RESTS and share < weights[0] / 2:
        st.markdown(
            f"The first token, {names[0]}, takes {weights[0]:.0%} of this row's weight but carries only "
            f"{share:.0%} of all lengths: {'through W_O ' * seen.has_output}its value is "
            f"{lengths[0]:.2f} long, those of the other keys {lengths[others].mean():.2f} on average."
        )


def _check_row(seen: Look, cell: Cell, edge: "EdgeValues") -> None:
    total = edge.weights[cell.query] @ edge.written
    if seen.has_output:
        wrote, what = seen.model.head_output(seen.attention, cell.head), "what the head wrote there"
    else:
        is_set_to_zero = cell.head in seen.attention.ablated
        wrote, what = (
            seen.attention.output[cell.head] * (not is_set_to_zero),
            "the head's output there",
        )
    wrote = wrote[cell.query]
    added, recorded = agreeing(*(float(np.linalg.norm(one)) for one in (total, wrote)))
    st.caption(
        f"Check: the edges of this row add up to a vector of length {added}; {what} "
        f"has length {recorded}. The two vectors differ by at most "
        f"{difference(float(np.abs(total - wrote).max()))} in any of their numbers."
    )


def _whole_head(
    seen: Look, cell: Cell, edge: "EdgeValues", boxes: Sequence[DeltaGenerator]
) -> None:
    """All edges of the head by their length, beside their weights."""
    queries, keys = seen.labels
    mask = seen.attention.mask_of(cell.head)
    norms = edge.norms
    with boxes[0]:
        blocked = None if mask is None else ~mask
        figure = edge_lengths(norms, queries=queries, keys=keys, blocked=blocked)
        chart(figure, f"edges-head-{cell.place}-{cell.head}")
    with boxes[1]:
        chart(
            weights_of_head(seen.attention, cell.head, queries=queries, keys=keys, fitting=NARROW),
            f"edges-weights-{cell.place}-{cell.head}",
        )
        weight, length = (
            float(one[:, 0].sum() / (one.sum() or 1)) for one in (edge.weights, norms)
        )
        look_for(
            f"On the left the length of what each edge carries, on the right the weights. Of all weights the "
            f"first token, **{plain(token_label(keys[0]))}**, has {weight:.0%}; of all lengths {length:.0%}."
        )


def _in_a_logit(
    seen: Look, cell: Cell, edge: "EdgeValues", boxes: Sequence[DeltaGenerator]
) -> None:
    """What each edge of the row adds to a logit after the row's token, or to how far it lies above
    another one."""
    if seen.trace.prediction is None:
        with boxes[0]:
            say_encoder(seen, "predicts no next token, so its edges add to no logit.")
        return
    if seen.attention.stack == "encoder":
        with boxes[0]:
            st.info(
                "The encoder's heads reach the logits only through cross-attention. Choose a head of the "
                "decoder."
            )
        return
    with boxes[1]:
        chosen = choose_logit(seen, cell)
    try:
        added = edge.logit(chosen.token, chosen.against, position=cell.query)[cell.query]
    except ValueError as refusal:  # parts of another run's stream stand in this one
        boxes[0].info(plain(str(refusal)))
        return
    with boxes[0]:
        _bars(
            seen,
            cell,
            edge.weights[cell.query],
            added,
            of_logit=f"{chosen.token}-{chosen.against}",
        )
    with boxes[1]:
        count = len(_open_keys(seen, cell, edge.weights[cell.query]))
        say_logit(seen, cell, chosen, added, count)
