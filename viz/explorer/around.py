"""The stages around the heads of a layer: positions (above the first layer the stream) and norm before the
queries, and after the outputs what all heads write together. Their arrays are as wide as the model, and
follow when such a stage is opened."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from model.nn.norms import NORMS
from model.trace.arrays import Array, read_only
from viz.explorer.packing import Json
from viz.explorer.stages import Stage
from viz.notation import formulas
from viz.notation.formulas import StageName, StepFormula
from viz.notation.words import sentences_of

if TYPE_CHECKING:
    from model.analysis.stream.around_heads import AroundHeads

say = sentences_of("explorer.around")

LARGEST = 12_000_000  # bytes of the arrays of one group in all runs; a larger one is not offered


@dataclass(frozen=True, eq=False)
class AroundStage:
    """One stage around the heads. Arrays are (token, column), those of a head where it has its own."""

    stage: Stage
    formula: StepFormula
    after: Callable[[int], Array]
    before: Callable[[int], Array] | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """What the browser makes the numbers of some stages of (js/around.js)."""

    parts: tuple[AroundStage, ...]
    arrays: Callable[[], dict[str, Array]]
    bytes: int
    leads: bool = True  # whether its stages come before the queries
    facts: Callable[[], Json] = dict


def offered(around: Sequence["AroundHeads"], *, runs: int) -> list[dict[str, Group]]:
    """The groups that can be shown, by name: of a run and, where two are compared, of the unchanged one; each
    where all runs have it. around: of each run, or of none."""
    if len(around) < runs:
        return [{}] * runs
    found = [_groups_of(one, runs) for one in around[:runs]]
    return [
        {name: run[name] for name in run if all(name in other for other in found)} for run in found
    ]


def _groups_of(around: "AroundHeads", runs: int) -> dict[str, Group]:
    """The groups that a layer has, in their order. runs: in how many the browser compares them."""
    merged = None if "output" in around.model.unproven else _merged(around)
    found = [
        _first(around),
        _norm(around),
        _head_norm(around, "query"),
        _turned(around),
        _head_norm(around, "key"),
        merged,
    ]
    named = {group.parts[0].stage.group: group for group in found if group is not None}
    return {name: group for name, group in named.items() if runs * group.bytes <= LARGEST}


def parts_of(groups: dict[str, Group]) -> dict[StageName, AroundStage]:
    """Each stage around the heads by its name."""
    return {part.stage.name: part for group in groups.values() for part in group.parts}


def between(groups: dict[str, Group], stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages of the heads with those before and after them."""

    def listed(leads: bool) -> Iterator[Stage]:
        for group in groups.values():
            if group.leads == leads:
                yield from (part.stage for part in group.parts)

    row = [*listed(True), *stages, *listed(False)]
    made = next(place for place, stage in enumerate(row) if stage.quantity == "query")
    if made > 0:  # the queries, or those that rotary positions turn
        row[made] = replace(row[made], step="· W_Q")
    row[0] = replace(row[0], step="")  # nothing leads to the first
    return tuple(row)


def _first(around: "AroundHeads") -> Group | None:
    """What a layer starts from: in the first one positions that were added to the vectors of the tokens,
    above it the stream as it enters."""
    if not around.summands:
        return None
    return _added(around) if around.is_first else _entering(around)


def _entering(around: "AroundHeads") -> Group | None:
    """The stream as it enters a layer above the first. It keeps the name of the first stage, so that who goes
    from layer to layer stays with what enters."""
    state = around.entering
    if state is None:
        return None
    layer = around.attention.layer
    stage = Stage(
        "positions",
        "stream",
        "number of x",
        "",
        "stream",
        "query",
        "dimension",
        say("stream_enters_layer", layer=layer),
        say("token_position_before"),
        group="positions",
        width=state.shape[1],
    )
    config = around.model.config
    sums = config.norm_place == "pre" and not config.embedding_norm
    part = AroundStage(stage, formulas.entering_stream(sums=sums), lambda head: state)
    facts: Json = {"kind": "added", "names": ["tokens"]}
    return Group((part,), lambda: {"tokens": state}, state.nbytes, facts=lambda: facts)


def _added(around: "AroundHeads") -> Group:
    """Positions that were added to the vectors of the tokens."""
    parts = around.summands
    tokens, width = parts["tokens"].shape
    stage = Stage(
        "positions",
        "positions",
        "number of x",
        "",
        "stream",
        "query",
        "dimension",
        say("token_vectors_positions"),
        say("first_layer_starts"),
        group="positions",
        width=width,
        captions=("token vectors", "with positions added"),
    )
    part = AroundStage(
        stage,
        formulas.added_positions(list(parts)),
        lambda head: read_only(np.stack(list(parts.values())).sum(axis=0)),
        lambda head: parts["tokens"],
    )
    size = 4 * len(parts) * tokens * width
    return Group(
        (part,), lambda: dict(parts), size, facts=lambda: {"kind": "added", "names": [*parts]}
    )


def _turned(around: "AroundHeads") -> Group | None:
    """Rotary positions, which turn the queries of each head."""
    turn = around.turn
    if turn is None:
        return None
    stage = Stage(
        "positions",
        "positions",
        "number of q",
        "",
        "query",
        "query",
        "dimension",
        say("queries_head_rotated"),
        say("pair_numbers_query"),
        group="positions",
        captions=("before the rotation", "after it: Q"),
    )
    part = AroundStage(
        stage,
        formulas.turned_positions(turn.pairs),
        lambda head: around.attention.query[head],
        around.turned_back,
    )
    angles = turn.angles.astype(np.float32)
    facts: Json = {"kind": "turned", "pairs": turn.pairs, "half": angles.shape[1]}
    return Group((part,), lambda: {"angles": angles}, angles.nbytes, facts=lambda: facts)


def _norm(around: "AroundHeads") -> Group | None:
    """The norm that the queries are made of."""
    record = around.norm
    if record is None:
        return None
    law = record.law
    shifts = around.model.config.shifts and law.shifts
    stage = Stage(
        "norm",
        "norm",
        "normalized number",
        law.short,
        "stream",
        "query",
        "dimension",
        say("feeds_layer_row", law=law.name),
        say("norm_gives_row_same", choice=" and β shifts them" if shifts else ""),
        group="norm",
        width=record.input.shape[1],
        captions=(say("stream_before_norm"), "after it: x"),
    )
    part = AroundStage(
        stage,
        formulas.norm(law, record.epsilon, shifts=shifts),
        lambda head: record.output,
        lambda head: record.input,
    )

    def arrays() -> dict[str, Array]:
        return {
            "input": record.input,
            "mean": record.mean,
            "inverse": record.inverse_deviation,
            "gamma": record.gamma,
            "beta": record.beta,
        }

    facts: Json = {"epsilon": record.epsilon, "measured": law.measured}
    return Group((part,), arrays, record.input.nbytes, facts=lambda: facts)


def _head_norm(around: "AroundHeads", side: Literal["query", "key"]) -> Group | None:
    """The norm of each head's queries or keys, between W_Q or W_K and rotary positions."""
    if not around.norms(side):
        return None
    config, attention = around.model.config, around.attention
    count = len(
        attention.vectors[0 if side == "query" else 1]
    )  # keys may be shared by several heads
    heads = range(0, attention.heads, attention.heads // count)
    name: StageName = "query_norm" if side == "query" else "key_norm"
    letter, map_ = ("q", "W_Q") if side == "query" else ("k", "W_K")
    law = config.norm_law
    stage = Stage(
        name,
        f"{letter} norm",
        "normalized number",
        "",
        side,
        side,
        "dimension",
        say("head_own_row_per", choice="Queries" if side == "query" else "Keys", law=law.name),
        say("head_gets_same_size", side=side) + (say("key") if side == "query" else say("query")),
        group=name,
        captions=(f"x {map_}", f"after its {law.short}"),
    )
    # What comes before it is shown less its mean, where one is subtracted.
    formula = formulas.norm(NORMS["rms"], config.epsilon, shifts=config.shifts, of=side)

    def arrays() -> dict[str, Array]:
        width = attention.key.shape[-1]
        maps = [around.map_of(head, side) for head in heads]
        return {
            "before": np.stack([around.mapped(head, side) for head in heads]),
            "after": np.stack([around.turned_back(head, side) for head in heads]),
            "gamma": np.stack([np.broadcast_to(one.gamma, width) for one in maps]),
            "beta": np.stack([np.broadcast_to(one.beta, width) for one in maps]),
        }

    part = AroundStage(
        stage,
        formula,
        lambda head: around.turned_back(head, side),
        lambda head: around.mapped(head, side),
    )
    facts: Json = {"epsilon": config.epsilon, "count": count}
    size = 2 * attention.vectors[0 if side == "query" else 1].nbytes
    return Group((part,), arrays, size, facts=lambda: facts)


def _merged(around: "AroundHeads") -> Group:
    """The outputs of all heads side by side, and times W_O."""
    heads, tokens, value_width = around.attention.output.shape
    weight, bias = around.output_map
    width = len(bias)
    joined = Stage(
        "concatenated",
        "heads",
        "output",
        "join",
        "output",
        "query",
        "dimension",
        f"Outputs of all {heads} heads side by side: {value_width} columns per head, framed = {{head}}",
        say("head_columns_own"),
        group="merged",
        width=heads * value_width,
        block=value_width,
    )
    written = Stage(
        "written",
        "written",
        "number",
        "· W_O",
        "stream",
        "query",
        "dimension",
        say("heads_write_together"),
        say("w_o_mixes_heads"),
        group="merged",
        width=width,
    )

    def added() -> Array:
        return around.written if around.added is None else around.added

    def arrays() -> dict[str, Array]:
        return {"joined": around.joined, "weight": weight, "bias": bias, "written": added()}

    sums = formulas.written(heads, bias=bool(bias.any()))
    parts = (
        AroundStage(joined, formulas.concatenated(), lambda head: around.joined),
        AroundStage(written, sums, lambda head: added()),
    )
    size = 4 * (tokens * (heads * value_width + width) + weight.size)
    return Group(
        parts, arrays, size, leads=False, facts=lambda: {"recorded": around.added is not None}
    )
