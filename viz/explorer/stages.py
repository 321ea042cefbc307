"""The eight stages of attention in order, with the words that stand beside their pictures."""

from dataclasses import dataclass
from typing import Literal

from viz.formulas import StageName
from viz.theme import QuantityName

Axis = Literal["query", "key", "dimension"]


@dataclass(frozen=True)
class Stage:
    """One picture of the strip. In `title`, `{head}` stands for a head's name, for instance L2H5."""

    name: StageName
    label: str
    step: str  # what leads from the pictures before to this one
    quantity: QuantityName
    rows: Axis
    columns: Axis
    title: str
    look: str


def stages(*, kind: str, masked: bool, leaks: bool, scale: float) -> tuple[Stage, ...]:
    """The stages of one attention layer.

    kind: "self", "causal" or "cross". masked: whether any key is hidden from any query. leaks: whether
    the fill of masked scores is a finite number, so that a masked key may still get weight.
    """
    hidden = _hidden(kind, masked)
    return (
        Stage(
            "query",
            "Q",
            "",
            "query",
            "query",
            "dimension",
            "Queries of {head}: one row a token, one column a dimension",
            "Each row is what a token asks for. Rows with the same pattern ask for the same thing.",
        ),
        Stage(
            "key",
            "K",
            "",
            "key",
            "key",
            "dimension",
            "Keys of {head}: one row a token, one column a dimension",
            "Each row is what a token offers to be found by. A query scores high where its row and a"
            " key's row agree in sign and are large.",
        ),
        Stage(
            "value",
            "V",
            "",
            "value",
            "key",
            "dimension",
            "Values of {head}: one row a token, one column a dimension",
            "Each row is what a token hands over when it is looked at.",
        ),
        Stage(
            "scores",
            "scores",
            "Q·Kᵀ",
            "score",
            "query",
            "key",
            "Scores of {head}: row = query, column = key, not yet scaled or masked",
            "A vertical stripe is a key that every query likes. The future is still visible here."
            if kind == "causal"
            else "A vertical stripe is a key that every query likes.",
        ),
        Stage(
            "scaled",
            "scaled",
            f"× {scale:.4g}",
            "score",
            "query",
            "key",
            "Scaled scores of {head}: row = query, column = key",
            "The pattern of the scores, on a smaller range. Without this the softmax would be harder."
            if scale != 1
            else "The same as the scores: nothing is scaled here.",
        ),
        Stage(
            "masked",
            "masked",
            "mask",
            "score",
            "query",
            "key",
            "Masked scores of {head}: row = query, column = key" + hidden,
            _masked_look(kind, masked, leaks),
        ),
        Stage(
            "weights",
            "weights",
            "softmax",
            "weight",
            "query",
            "key",
            "Weights of {head}: row = query, column = key, rows sum to 1" + hidden,
            "Dark cells are where a token looks. A diagonal: at itself. One step below it: at the"
            " token before. The first column: at nothing in particular."
            if kind == "causal"
            else "Dark cells are where a token looks. Read along a row: its weights sum to 1.",
        ),
        Stage(
            "output",
            "output",
            "· V",
            "output",
            "query",
            "dimension",
            "Output of {head}: one row a query token, one column a dimension",
            "Each row is a mixture of the rows of V, with the weights of that query.",
        ),
    )


def _hidden(kind: str, masked: bool) -> str:
    if not masked:
        return ""
    if kind == "causal":
        return ", the future is the upper right (not allowed, hatched)"
    return ", hatched = not allowed"


def _masked_look(kind: str, masked: bool, leaks: bool) -> str:
    if not masked:
        return "Every query may look at every key here, so this is the picture before, unchanged."
    if leaks:
        return "The fill is a number, not minus infinity. A masked key can still get weight in the next step."
    if kind == "causal":
        return "The upper right is the future: a query may look at itself and at what came before."
    return "Hatched keys are hidden from that query. They get no weight in the next step."
