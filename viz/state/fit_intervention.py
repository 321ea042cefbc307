"""An intervention brought to the model and the text that are there: what they do not have is left
out. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from model.nn.intervention import Intervention
from model.nn.mask_choices import MaskChoice, masks_of
from model.nn.patches import Patch

if TYPE_CHECKING:
    from model.run.model import Model


def masks_for(model: "Model") -> list[MaskChoice]:
    """The masks that an intervention can set in a model, its own first."""
    windowed = any(layer.window is not None for layer in model.module.attentions())
    return masks_of(model.config.shape, windowed=windowed)


def fitting_text(intervention: Intervention, model: "Model", length: int) -> Intervention:
    """An intervention without heads that this model lacks, and tokens and edges that this text lacks.
    Parts of another run go where that is of another model, or its text has another length.

    length: tokens of the text. Edges of a model with two stacks are kept only where the intervention names
    their sub-layers; those past the end are refused by the pass itself, which knows the target.
    """
    heads = {layer.place.name: layer.heads for layer in model.module.attentions()}
    return replace(
        intervention,
        hidden=frozenset(position for position in intervention.hidden if position < length),
        blocked=_edges(intervention, len(model.stacks()), length),
        ablated=frozenset(
            (name, head) for name, head in intervention.ablated if head < heads.get(name, 0)
        ),
        weights=_weights(intervention, model, heads, length),
        patch=_patch(intervention.patch, model, length),
    )


def _weights(
    intervention: Intervention, model: "Model", heads: Mapping[str, int], length: int
) -> frozenset[tuple[str, int, int, int, float]]:
    """Of a model with two stacks the pass itself refuses what lies past the end of the target."""
    inside = len(model.stacks()) > 1
    return frozenset(
        cell
        for cell in intervention.weights
        if cell[1] < heads.get(cell[0], 0) and (inside or max(cell[2:4]) < length)
    )


def _patch(patch: Patch | None, model: "Model", length: int) -> Patch | None:
    """Parts of a run of this model over a text of the same length."""
    if patch is None or patch.model != model.name or len(model.tokens(patch.text)) != length:
        return None
    return patch


def _edges(intervention: Intervention, stacks: int, length: int) -> frozenset[tuple[int, int]]:
    if stacks > 1:
        return intervention.blocked if intervention.only is not None else frozenset()
    return frozenset(
        (query, key) for query, key in intervention.blocked if max(query, key) < length
    )
