"""The stages of attention in order, with the words that stand beside their pictures."""

from dataclasses import dataclass, replace
from typing import Literal

from viz.notation.formulas import StageName
from viz.notation.theme import QuantityName

Axis = Literal["query", "key", "dimension"]


@dataclass(frozen=True)
class Stage:
    """One picture of the strip. In `title`, `{head}` stands for a head's name, for instance L2H5.

    `_STAGES` leaves open what depends on the layer: `{scale}`, `{hidden}` and some of the looks.
    """

    name: StageName
    label: str
    cell: str  # what one cell is
    step: str  # what leads from the pictures before to this one
    quantity: QuantityName
    rows: Axis
    columns: Axis
    title: str
    look: str = ""


_STRIPE = "A vertical stripe is a key that every query likes."
_WEIGHTS = "The strongest cells are where a token looks. Read along a row: its weights sum to 1."
_CAUSAL_WEIGHTS = (
    "The strongest cells are where a token looks. A diagonal: at itself. One step below it:"
    " at the token before. The first column: at nothing in particular."
)
_STAGES = (
    Stage(
        name="query",
        label="Q",
        cell="query value",
        step="",
        quantity="query",
        rows="query",
        columns="dimension",
        title="Queries of {head}: one row a token, one column a dimension",
        look="Each row is what a token asks for. Rows with the same pattern ask for the same thing.",
    ),
    Stage(
        name="key",
        label="K",
        cell="key value",
        step="",
        quantity="key",
        rows="key",
        columns="dimension",
        title="Keys of {head}: one row a token, one column a dimension",
        look="Each row is what a token offers to be found by. A query scores high where its row and a"
        " key's row agree in sign and are large.",
    ),
    Stage(
        name="value",
        label="V",
        cell="value",
        step="",
        quantity="value",
        rows="key",
        columns="dimension",
        title="Values of {head}: one row a token, one column a dimension",
        look="Each row is what a token hands over when it is looked at.",
    ),
    Stage(
        name="scores",
        label="scores",
        cell="score",
        step="Q·Kᵀ",
        quantity="score",
        rows="query",
        columns="key",
        title="Scores of {head}: row = query, column = key, not yet scaled or masked",
    ),
    Stage(
        name="scaled",
        label="scaled",
        cell="scaled score",
        step="× {scale}",
        quantity="score",
        rows="query",
        columns="key",
        title="Scaled scores of {head}: row = query, column = key",
    ),
    Stage(
        name="masked",
        label="masked",
        cell="masked score",
        step="mask",
        quantity="score",
        rows="query",
        columns="key",
        title="Masked scores of {head}: row = query, column = key{hidden}",
    ),
    Stage(
        name="weights",
        label="weights",
        cell="weight",
        step="softmax",
        quantity="weight",
        rows="query",
        columns="key",
        title="Weights of {head}: row = query, column = key, rows sum to 1{hidden}",
    ),
    Stage(
        name="output",
        label="output",
        cell="output",
        step="· V",
        quantity="output",
        rows="query",
        columns="dimension",
        title="Output of {head}: one row a query token, one column a dimension",
        look="Each row is a mixture of the rows of V, with the weights of that query.",
    ),
)


def stages(
    *, kind: str, masked: bool, leaks: bool, scale: float, unmasked: bool = True
) -> tuple[Stage, ...]:
    """The stages of one attention layer; without a mask there is no masked stage.

    kind: "self", "causal" or "cross". masked: whether any key is hidden from any query. unmasked:
    whether none is in the unchanged run beside it. leaks: whether the fill of masked scores is a
    finite number, so that a masked key may still get weight.
    """
    hidden, causal = _hidden(kind, masked), kind == "causal"
    looks: dict[StageName, str] = {
        "scores": _STRIPE + (" The future is still visible here." if causal else ""),
        "scaled": _scaled_look(scale),
        "masked": _masked_look(kind, masked, leaks),
        "weights": _CAUSAL_WEIGHTS if causal else _WEIGHTS,
    }
    return tuple(
        replace(
            stage,
            step=stage.step.replace("{scale}", f"{scale:.4g}"),
            title=stage.title.replace("{hidden}", hidden),
            look=looks.get(stage.name, stage.look),
        )
        for stage in _STAGES
        if stage.name != "masked" or masked or not unmasked or causal
    )


def _scaled_look(scale: float) -> str:
    if scale == 1:
        return "The same as the scores: nothing is scaled here."
    if abs(scale) < 1:
        return "The pattern of the scores, on a smaller range. Without this the softmax would be harder."
    return "The pattern of the scores, on a larger range. Without this the softmax would be softer."


def _hidden(kind: str, masked: bool) -> str:
    if not masked:
        return ""
    if kind == "causal":
        return "; upper right = the future, not allowed"
    return "; hatched = not allowed"


def _masked_look(kind: str, masked: bool, leaks: bool) -> str:
    if not masked:
        return "Every query may look at every key here, so this is the picture before, unchanged."
    if leaks:
        return "The fill is a number, not minus infinity. A masked key can still get weight in the next step."
    if kind == "causal":
        return "The upper right is the future: a query may look at itself and at what came before."
    return "Hatched keys are hidden from that query. They get no weight in the next step."
