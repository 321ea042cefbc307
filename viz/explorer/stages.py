"""The stages of attention in order, with the words beside their pictures."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from model.nn.stages import SCORE_STAGES, SINKS
from viz.notation.formulas import StageName
from viz.notation.numbers import signed
from viz.notation.theme import QuantityName

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
    hidden = "; upper right = the future, masked" if upper_right else "; hatched = masked"
    hidden = hidden if window is None else f"; hatched = outside the window of {window}, masked"
    hidden = hidden if masked else ""
    future = " The future is still visible here." if causal else ""
    striped = f"A vertical stripe is a key that matches every query.{future}"
    found = (
        *_VECTORS,
        _matrix("scores", "Q·Kᵀ", ", not yet scaled or masked", striped),
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
    title = f"{title}, one column per dimension"
    step = "· V" if name == "output" else ""
    return Stage(name, label, cell, step, name, rows, "dimension", title, look)


_VECTORS = (
    _vectors(
        "query",
        "Q",
        "query value",
        "Queries of {head}: one row per token",
        "Each row is the query of one token: what it looks for. Rows with the same pattern look "
        "for the same thing.",
    ),
    _vectors(
        "key",
        "K",
        "key value",
        "Keys of {head}: one row per token",
        "Each row is the key of one token. A key gets a high score from a query if both are large "
        "in the same dimensions, with the same signs.",
    ),
    _vectors(
        "value",
        "V",
        "value",
        "Values of {head}: one row per token",
        "Each row is the value of one token: what it passes on to the tokens that attend to it.",
    ),
)
_OUTPUT = _vectors(
    "output",
    "output",
    "output",
    "Output of {head}: one row per query token",
    "Each row is the sum of the rows of V, each times the weight that this query gives it.",
)
_CELLS = {"scores": "score", "weights": "weight"}


def _matrix(name: StageName, step: str, more: str, look: str) -> Stage:
    """A stage with a row for each query and a column for each key."""
    called = _CELLS.get(name, f"{name} score")
    title = f"{called.capitalize()}s of {{head}}: row = query, column = key{more}"
    quantity: QuantityName = "weight" if name == "weights" else "score"
    return Stage(name, name, called, step, quantity, "query", "key", title, look)


def _weights(hidden: str, causal: bool, sinks: bool) -> Stage:
    """Where there are sinks, one more column shows what the sink of the head takes."""
    sums = SINKS.sums if sinks else "rows sum to 1"
    look = f"{SINKS.look if sinks else ''}{_weights_look(causal)}"
    return replace(_matrix("weights", "softmax", f", {sums}{hidden}", look), sink=sinks)


def _weights_look(causal: bool) -> str:
    if not causal:
        return "A row shows how much its token attends to each token of the columns: it sums to 1."
    return (
        "Look for lines and columns: on the diagonal a token attends to itself, just below it to the one "
        "before."
    )


def _scaled_look(scale: float) -> str:
    if scale == 1:
        return "The same as the scores: nothing is scaled here."
    if abs(scale) < 1:
        return (
            "The same pattern in a smaller range. Without this the softmax would put more of the "
            "weight on the largest scores."
        )
    return (
        "The same pattern in a larger range. Without this the softmax would spread the weight "
        "more evenly."
    )


def _masked_look(
    kind: str, masked: bool, leaks: bool, window: int | None, only_future: bool
) -> str:
    if not masked:
        return "Every query may attend to every key here, so nothing changes."
    if leaks:
        return (
            "The mask value is a number, not minus infinity. "
            "A masked key can still get weight in the next step."
        )
    if window is not None:
        return (
            f"A sliding window of {window}: a query attends to at most {window} tokens, itself and those "
            "just before it. The lower left is too far back, the upper right is the future."
            if kind == "causal"
            else f"A sliding window: a query attends only to tokens near it, at most {window}."
        )
    if kind == "causal" and only_future:
        return (
            "The upper right is the future: a query may attend only to itself and to earlier "
            "tokens."
        )
    return (
        "Hatched keys are hidden from the query of that row. They get no weight in the next step."
    )
