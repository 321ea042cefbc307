"""The stages of attention in order, with the words beside their pictures."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from model.nn.stages import SCORE_STAGES, SINKS
from viz.notation.formulas import StageName
from viz.notation.numbers import signed
from viz.notation.theme import QuantityName
from viz.notation.words import sentences_of

say = sentences_of("explorer.stages")

StageAxis = Literal["query", "key", "dimension"]


@dataclass(frozen=True)
class Stage:
    """One picture of the strip. In `title`, `{head}` stands for a head's name, for instance L2H5."""

    name: StageName
    label: str
    cell: str  # the name of a cell's number
    step: str  # the operation that leads to this stage
    quantity: QuantityName
    rows: StageAxis
    columns: StageAxis
    title: str
    look: str = ""
    group: str = ""  # of a stage around the heads: which of their arrays it is drawn from
    width: int = 0  # columns, where they are not a head's
    block: int = 0  # columns of one head, where all heads stand side by side
    captions: tuple[str, ...] = ()  # of the vector before this step, and of the one after it
    sink: bool = False  # whether one more column shows what a sink takes


def stages(
    *,
    kind: str,
    masked: bool,
    leaks: bool,
    scale: float,
    unmasked: bool = True,
    needs: Mapping[str, object] = MappingProxyType({}),
    later: Collection[str] = (),
    window: int | None = None,
    only_future: bool = True,
) -> tuple[Stage, ...]:
    """The stages of one attention layer; without a mask there is no masked stage.

    kind: "self", "causal" or "cross". masked: whether any cell is masked. unmasked: whether none is
    masked in the unchanged run. leaks: whether the mask value is finite, so that a masked key may still
    get weight. needs: of its stages beside those, by their fields. later: the fields of those
    that this run or the unchanged one has. window: the width of the sliding window. only_future: whether
    a causal mask without a window hides nothing but the future.
    """
    causal = kind == "causal"
    upper_right = causal and only_future
    hidden = say("upper_right_future") if upper_right else "; hatched = masked"
    hidden = hidden if window is None else say("hatched_outside_window", window=window)
    hidden = hidden if masked else ""
    future = say("future_still_visible") if causal else ""
    striped = say("vertical_stripe_key", future=future)
    found = (
        *_VECTORS,
        _matrix("scores", "Q·Kᵀ", say("not_yet_scaled_masked"), striped),
        _matrix("scaled", f"× {signed(f'{scale:.4g}')}", "", _scaled_look(scale)),
        *(
            _matrix(stage.name, stage.step, "", stage.look(needs.get(stage.field)))
            for stage in SCORE_STAGES
            if stage.field in later
        ),
        _matrix("masked", "mask", hidden, _masked_look(kind, masked, leaks, window, only_future)),
        _weights(hidden, causal, SINKS.field in later),
        _OUTPUT,
    )
    has_mask = masked or not unmasked or causal
    return tuple(stage for stage in found if has_mask or stage.name != "masked")


def _vectors(
    name: Literal["query", "key", "value", "output"], label: str, cell: str, title: str, look: str
) -> Stage:
    """A stage with a row for each token and a column for each dimension."""
    rows: StageAxis = "query" if name in ("query", "output") else "key"
    title = say("column_per_dimension", title=title)
    step = "· V" if name == "output" else ""
    return Stage(name, label, cell, step, name, rows, "dimension", title, look)


_VECTORS = (
    _vectors(
        "query",
        "Q",
        "query value",
        say("queries_head_row"),
        say("row_query_token"),
    ),
    _vectors(
        "key",
        "K",
        "key value",
        say("keys_head_row_per"),
        say("row_key_token_key"),
    ),
    _vectors(
        "value",
        "V",
        "value",
        say("values_head_row"),
        say("row_value_token"),
    ),
)
_OUTPUT = _vectors(
    "output",
    "output",
    "output",
    say("output_head_row"),
    say("row_sum_rows_v_times"),
)
_CELLS = {"scores": "score", "weights": "weight"}


def _matrix(name: StageName, step: str, more: str, look: str) -> Stage:
    """A stage with a row for each query and a column for each key."""
    called = _CELLS.get(name, f"{name} score")
    title = say("head_row_query_column", called=called.capitalize(), more=more)
    quantity: QuantityName = "weight" if name == "weights" else "score"
    return Stage(name, name, called, step, quantity, "query", "key", title, look)


def _weights(hidden: str, causal: bool, sinks: bool) -> Stage:
    """Where there are sinks, one more column shows what the sink of the head takes."""
    sums = SINKS.sums if sinks else "rows sum to 1"
    look = f"{SINKS.look if sinks else ''}{_weights_look(causal)}"
    return replace(_matrix("weights", "softmax", f", {sums}{hidden}", look), sink=sinks)


def _weights_look(causal: bool) -> str:
    if not causal:
        return say("row_shows_much_token")
    return say("look_lines_columns")


def _scaled_look(scale: float) -> str:
    if scale == 1:
        return say("same_scores_nothing")
    if abs(scale) < 1:
        return say("same_pattern_smaller")
    return say("same_pattern_larger")


def _masked_look(
    kind: str, masked: bool, leaks: bool, window: int | None, only_future: bool
) -> str:
    if not masked:
        return say("every_query_may")
    if leaks:
        return say("mask_value_number")
    if window is not None:
        return (
            say("sliding_window_query", window=window)
            if kind == "causal"
            else say("sliding_window_query_attends", window=window)
        )
    if kind == "causal" and only_future:
        return say("upper_right_future_query")
    return say("hatched_keys_hidden")
