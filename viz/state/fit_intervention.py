"""A change brought to the model and the text that are there: what they do not have is left out. Pure."""

from dataclasses import replace
from typing import TYPE_CHECKING

from model.nn.intervention import Intervention

if TYPE_CHECKING:
    from model.run.model import Model


def fitting_text(change: Intervention, model: "Model", length: int) -> Intervention:
    """A change without heads that this model lacks, and tokens and edges that this text lacks.

    length: tokens of the text. Edges of a model with two stacks are kept only where the change names
    their sub-layers; those past the end are refused by the pass itself, which knows the target.
    """
    heads = {layer.place.name: layer.heads for layer in model.module.attentions()}
    return replace(
        change,
        hidden=frozenset(position for position in change.hidden if position < length),
        blocked=_edges(change, len(model.stacks()), length),
        ablated=frozenset(
            (name, head) for name, head in change.ablated if head < heads.get(name, 0)
        ),
    )


def _edges(change: Intervention, stacks: int, length: int) -> frozenset[tuple[int, int]]:
    if stacks > 1:
        return change.blocked if change.only is not None else frozenset()
    return frozenset((query, key) for query, key in change.blocked if max(query, key) < length)
