"""What the edges of a head carry: the lengths of what they write, and what they add to a logit."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import edge_bars, edge_lengths
from viz.notation.head_formulas import EDGE, EDGE_BEFORE
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import part_name
from viz.notation.numbers import agreeing, sign_of_sum, signed
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.shell.pictures import of_all_pairs
from viz.state.look import Look
from viz.state.session import change_view, current

if TYPE_CHECKING:
    from model.analysis.attribution.score_parts import EdgeValues

say = sentences_of("attention.edges")

ROW, LOGIT, HEAD = "One row", "In a logit", "The whole head"
BARS = 24  # keys that are drawn
OFFERED = 8  # likeliest next tokens
RESTS = 0.5  # of a row's weight: with more, what the first token carries is told
EdgeRow = NDArray[np.float64]


class ScoreCell(NamedTuple):
    """A query and a key in one head."""

    place: str
    head: int
    query: int
    key: int


def cell_of(look: Look) -> ScoreCell:
    """The view's cell, or the nearest that this run has, which the view then has."""
    queries, keys = look.labels
    chosen = current().selection.clamped(
        heads=look.attention.heads, queries=len(queries), keys=len(keys)
    )
    change_view(current().at(chosen))
    return ScoreCell(look.place, chosen.head, chosen.query, chosen.key)


@of_all_pairs
def edges(look: Look) -> Panel:
    """The chosen row's edges by length or by what they add to a logit, or all edges of the head."""
    from model.analysis import edge_values  # imports torch: pages are drawn first

    offered = list(_PICTURES)
    if look.trace.prediction is None or look.attention.stack == "encoder":
        offered.remove(LOGIT)  # its edges reach no logit
    shown = one_of("Carries", offered, f"edges-as-{len(offered)}", quiet=True)
    cell = cell_of(look)
    has_output = look.has_output
    edge = edge_values(look.model, look.trace, cell.place, cell.head, through_output=has_output)
    panel = _PICTURES[shown](look, cell, edge)
    said: list[Part] = [say("edge_token_hands")]
    if not has_output:
        why = look.model.unproven["output"]
        reason = why if why.endswith(".") else say("w_o_not_proven_because", why=why)
        said.append(Caption(say("lengths_weight_value", reason=reason)))
    return replace(
        panel,
        below=[*panel.below, *said, Formula(EDGE if has_output else EDGE_BEFORE)],
        check=panel.check if shown == LOGIT else _check_of_row(look, cell, edge),
    )


def _one_row(look: Look, cell: ScoreCell, edge: "EdgeValues") -> Panel:
    """Whether the largest weight carries the longest vector; and whether the first token rests the head."""
    weights, carried = edge.weights[cell.query], edge.norms[cell.query]
    names = [f"**{plain(token_label(text))}**" for text in look.labels[1]]
    heavy, long = int(weights.argmax()), int(carried.argmax())
    if not carried.any():
        words = say("edge_row_carries")
    elif len(_open_keys(look, cell, weights)) == 1:
        words = say(
            "row_edge_weight",
            heavy_names=names[heavy],
            heavy_weights=weights[heavy],
            heavy_carried=carried[heavy],
        )
    elif heavy == long:
        words = say(
            "largest_weight_row",
            heavy_names=names[heavy],
            heavy_weights=weights[heavy],
            heavy_carried=carried[heavy],
        )
    else:
        words = say(
            "largest_weight_row_position",
            heavy_weights=weights[heavy],
            heavy_names=names[heavy],
            heavy=heavy,
            heavy_carried=carried[heavy],
            long_carried=carried[long],
            long_names=names[long],
            long=long,
            long_weights=weights[long],
        )
    rests: list[Part] = []
    lengths = np.linalg.norm(edge.written, axis=-1)
    others = np.flatnonzero(_allowed(look, cell))[1:]
    share = float(carried[0] / carried.sum()) if carried.any() else 0.0
    if len(others) and weights[0] >= RESTS and share < weights[0] / 2:
        rests.append(
            say(
                "first_token_takes",
                first_names=names[0],
                first_weights=weights[0],
                share=share,
                value="through W_O " * look.has_output,
                first_lengths=lengths[0],
                mean_others_lengths=lengths[others].mean(),
            )
        )
    panel = _bars(look, cell, weights, carried)
    return replace(panel, look_for=words, below=[*panel.below, *rests])


def _whole_head(look: Look, cell: ScoreCell, edge: "EdgeValues") -> Panel:
    """All edges of the head by their length."""
    queries, keys = look.labels
    mask = look.attention.mask_of(cell.head)
    weight, length = (
        float(one[:, 0].sum() / (one.sum() or 1)) for one in (edge.weights, edge.norms)
    )
    blocked = None if mask is None else ~mask
    return Panel(
        "edges-head",
        look_for=say(
            "length_edge_carries", first_keys=token_label(keys[0]), weight=weight, length=length
        ),
        picture=edge_lengths(edge.norms, queries=queries, keys=keys, blocked=blocked),
        chosen=f"{cell.place}-{cell.head}",
    )


def _in_a_logit(look: Look, cell: ScoreCell, edge: "EdgeValues") -> Panel:
    """What each edge of the row adds to a logit after the row's token, or to how far it lies above
    another one."""
    prediction = look.trace.require_prediction()
    logits = prediction.after(cell.query)
    own = [token.id for token in look.trace.tokens_of("decoder")]
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    ids = list(dict.fromkeys([*likely, *own]))
    labels = [token_label(token.text, LISTED) for token in look.model.tokenizer.named(ids)]
    listed = [
        f"{label} (logit {_number(logits[id_])})" for label, id_ in zip(labels, ids, strict=True)
    ]
    key = f"edges-{hash(tuple(own))}"
    place = one_listed("Next token", listed, f"{key}-token")
    other = one_listed("Rather than", [say("other_logit_alone"), *listed], f"{key}-against") - 1
    token, against = ids[place], None if other < 0 else ids[other]
    try:
        added = edge.logit(token, against, position=cell.query)[cell.query]
    except ValueError as refusal:  # parts of another run's stream stand in this one
        raise NotShownError(*refusal.args) from refusal
    name, value = f"The logit of **{plain(labels[place])}**", float(logits[token])
    if against is not None:
        name += f" above that of **{plain(labels[other])}**"
        value -= float(logits[against])
    weights = edge.weights[cell.query]
    count = len(_open_keys(look, cell, weights))
    queries, keys = ([plain(token_label(text)) for text in texts] for texts in look.labels)
    most, head = int(np.abs(added).argmax()), plain(part_name(f"{cell.place}.{cell.head}"))
    largest = say(
        "counts_most_position", most_keys=keys[most], most=most, number=_number(added[most], "+")
    )
    return replace(
        _bars(look, cell, weights, added, of_logit=f"{token}-{against}"),
        look_for=say(
            "after_edges_add",
            name=name,
            queries=queries[cell.query],
            number=_number(value),
            head=head,
            added_number=_number(added.sum(), "+"),
            largest=largest if count > 1 else "",
        ),
        check=_check_of_logit(look, cell, (token, against), value, added, count),
    )


def _check_of_logit(
    look: Look,
    cell: ScoreCell,
    tokens: tuple[int, int | None],
    value: float,
    added: EdgeRow,
    count: int,
) -> Check:
    """What the head's edges add, the other heads and everything else; their sum beside the model's own.

    Args:
        tokens: the ids of the token and of the one that it is held against, if any.
        value: the model's own logit, or the difference of two.
        added: (key,) by the edges of the row.
        count: of the edges that the mask leaves.
    """
    from model.analysis.heads.contributions import parts_of_logit  # imports torch

    sums = {"this": 0.0, "heads": 0.0, "rest": 0.0}
    for token, sign in zip(tokens, (1.0, -1.0), strict=True):
        if token is None:
            continue
        for part in parts_of_logit(look.model, look.trace, cell.query, token):
            which = "rest" if part.kind != "head" else "heads"
            which = "this" if (part.name, part.head) == (cell.place, cell.head) else which
            sums[which] += sign * part.effect
    total = float(added.sum()) + sums["heads"] + sums["rest"]
    together, recorded = agreeing(total, value)
    decimals = len(recorded.partition(".")[2])
    parts = [_number(one, "+", decimals) for one in (added.sum(), sums["heads"], sums["rest"])]
    apart, own_apart = abs(total - value), abs(float(added.sum()) - sums["this"])
    return Check(
        say(
            "check_other_heads",
            count=count,
            first_parts=parts[0],
            parts=parts[1],
            parts_2=parts[2],
            sign_of_sum=sign_of_sum(parts, together),
            together=together,
            recorded=recorded,
            apart=apart,
            own_apart=own_apart,
        ),
        max(apart, own_apart),
    )


def _number(value: float, sign: str = "", decimals: int = 2) -> str:
    return signed(f"{value:{sign if round(value, decimals) else ''}z.{decimals}f}")


def _bars(
    look: Look, cell: ScoreCell, weights: EdgeRow, carried: EdgeRow, *, of_logit: str | None = None
) -> Panel:
    """Two bars a key, the weight and what the edge carries; a click chooses the key."""
    _, keys = look.labels
    rank = np.maximum(
        weights / (weights.max() or 1), np.abs(carried) / (np.abs(carried).max() or 1)
    )
    open_keys = _open_keys(look, cell, weights)
    largest = open_keys[np.argsort(-rank[open_keys], kind="stable")[:BARS]]
    listed = np.sort(largest) if len(largest) else np.array([cell.key])
    title = "length" if of_logit is None else say("adds_logit")
    few = say("largest_edges_order", listed=len(listed), open_keys=len(open_keys))
    return Panel(
        "edges",
        picture=edge_bars(
            [keys[key] for key in listed],
            weights[listed],
            carried[listed],
            title=title,
            is_signed=of_logit is not None,
        ),
        clicked=lambda number: change_view(replace(current(), key=int(listed[number]))),
        chosen=f"{'-'.join(map(str, cell))}-{of_logit}",
        alt=say("weight_key_beside", title=title),
        below=[Caption(few)] if len(open_keys) > len(listed) else (),
        table=Table(
            {
                "key": [numbered_labels(keys)[key] for key in open_keys],
                "weight": weights[open_keys],
                title: carried[open_keys],
            }
        ),
    )


def _open_keys(look: Look, cell: ScoreCell, weights: EdgeRow) -> NDArray[np.intp]:
    """The keys of the row that are not masked, or get weight all the same: a mask value may leave some."""
    return np.flatnonzero(_allowed(look, cell) | (weights > 0))


def _allowed(look: Look, cell: ScoreCell) -> NDArray[np.bool_]:
    mask = look.attention.mask_of(cell.head)
    count = len(look.labels[1])
    return np.ones(count, np.bool_) if mask is None else mask[cell.query]


def _check_of_row(look: Look, cell: ScoreCell, edge: "EdgeValues") -> Check:
    total = edge.weights[cell.query] @ edge.written
    if look.has_output:
        wrote, what = look.model.head_output(look.attention, cell.head), say("head_wrote")
    else:
        wrote, what = look.attention.output[cell.head], say("head_output")
        wrote = wrote * (cell.head not in look.attention.ablated)
    wrote = wrote[cell.query]
    added, recorded = agreeing(*(float(np.linalg.norm(one)) for one in (total, wrote)))
    apart = float(np.abs(total - wrote).max())
    return Check(
        say("check_edges_row", added=added, what=what, recorded=recorded, apart=apart),
        apart,
    )


_PICTURES: dict[str, Callable[[Look, ScoreCell, "EdgeValues"], Panel]] = {
    ROW: _one_row,
    LOGIT: _in_a_logit,
    HEAD: _whole_head,
}
