"""The stages of attention in order, with the words beside their pictures."""

from dataclasses import dataclass
from typing import Literal

from viz.notation.formulas import StageName
from viz.notation.theme import QuantityName

Axis = Literal["query", "key", "dimension"]


@dataclass(frozen=True)
class Stage:
    """One picture of the strip. In `title`, `{head}` stands for a head's name, for instance L2H5."""

    name: StageName
    label: str
    cell: str  # the name of a cell's number
    step: str  # the operation that leads to this stage
    quantity: QuantityName
    rows: Axis
    columns: Axis
    title: str
    look: str = ""


def stages(
    *, kind: str, masked: bool, leaks: bool, scale: float, unmasked: bool = True
) -> tuple[Stage, ...]:
    """The stages of one attention layer; without a mask there is no masked stage.

    kind: "self", "causal" or "cross". masked: whether any cell is masked. unmasked: whether none is
    masked in the unchanged run. leaks: whether the mask value is finite, so that a masked key may still
    get weight.
    """
    causal = kind == "causal"
    hidden = "; upper right = the future, not allowed" if causal else "; hatched = not allowed"
    hidden = hidden if masked else ""
    future = " The future is still visible here." if causal else ""
    striped = f"A vertical stripe is a key that every query likes.{future}"
    found = (
        *_VECTORS,
        _matrix("scores", "Q·Kᵀ", ", not yet scaled or masked", striped),
        _matrix("scaled", f"× {scale:.4g}", "", _scaled_look(scale)),
        _matrix("masked", "mask", hidden, _masked_look(kind, masked, leaks)),
        _matrix("weights", "softmax", f", rows sum to 1{hidden}", _weights_look(causal)),
        _OUTPUT,
    )
    has_mask = masked or not unmasked or causal
    return tuple(stage for stage in found if has_mask or stage.name != "masked")


def _vectors(
    name: Literal["query", "key", "value", "output"], label: str, cell: str, title: str, look: str
) -> Stage:
    """A stage with a row for each token and a column for each dimension."""
    rows: Axis = "query" if name in ("query", "output") else "key"
    title = f"{title}, one column a dimension"
    step = "· V" if name == "output" else ""
    return Stage(name, label, cell, step, name, rows, "dimension", title, look)


_VECTORS = (
    _vectors(
        "query",
        "Q",
        "query value",
        "Queries of {head}: one row a token",
        "Each row is what a token asks for. Rows with the same pattern ask for the same thing.",
    ),
    _vectors(
        "key",
        "K",
        "key value",
        "Keys of {head}: one row a token",
        "Each row is what a token offers to be found by. A query scores high where its row and a key's row"
        " agree in sign and are large.",
    ),
    _vectors(
        "value",
        "V",
        "value",
        "Values of {head}: one row a token",
        "Each row is what a token hands over when it is looked at.",
    ),
)
_OUTPUT = _vectors(
    "output",
    "output",
    "output",
    "Output of {head}: one row a query token",
    "Each row is a mixture of the rows of V, with the weights of that query.",
)
_CELLS = {
    "scores": "score",
    "scaled": "scaled score",
    "masked": "masked score",
    "weights": "weight",
}


def _matrix(name: StageName, step: str, more: str, look: str) -> Stage:
    """A stage with a row for each query and a column for each key."""
    called = _CELLS[name]
    title = f"{called.capitalize()}s of {{head}}: row = query, column = key{more}"
    quantity: QuantityName = "weight" if name == "weights" else "score"
    return Stage(name, name, called, step, quantity, "query", "key", title, look)


def _weights_look(causal: bool) -> str:
    strongest = "The strongest cells are where a token looks."
    if not causal:
        return f"{strongest} Read along a row: its weights sum to 1."
    return (
        f"{strongest} A diagonal: at itself. One step below it: at the token before. The first column: at"
        " nothing in particular."
    )


def _scaled_look(scale: float) -> str:
    if scale == 1:
        return "The same as the scores: nothing is scaled here."
    if abs(scale) < 1:
        return "The pattern of the scores, on a smaller range. Without this the softmax would be harder."
    return "The pattern of the scores, on a larger range. Without this the softmax would be softer."


def _masked_look(kind: str, masked: bool, leaks: bool) -> str:
    if not masked:
        return "Every query may look at every key here, so this is the picture before, unchanged."
    if leaks:
        return (
            "The mask value is a number, not minus infinity. "
            "A masked key can still get weight in the next step."
        )
    if kind == "causal":
        return "The upper right is the future: a query may look at itself and at what came before."
    return "Hatched keys are hidden from that query. They get no weight in the next step."
