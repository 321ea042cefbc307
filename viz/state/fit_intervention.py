"""An intervention brought to the model and the text that are there: what they do not have is left
out. Pure."""

from dataclasses import replace
from typing import TYPE_CHECKING

from model.nn.intervention import Intervention

if TYPE_CHECKING:
    from model.run.model import Model


def fitting_text(intervention: Intervention, model: "Model", length: int) -> Intervention:
    """An intervention without heads that this model lacks, and tokens and edges that this text lacks.

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
    )


def _edges(intervention: Intervention, stacks: int, length: int) -> frozenset[tuple[int, int]]:
    if stacks > 1:
        return intervention.blocked if intervention.only is not None else frozenset()
    return frozenset(
        (query, key) for query, key in intervention.blocked if max(query, key) < length
    )
