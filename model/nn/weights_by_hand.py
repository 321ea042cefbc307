"""Attention weights that were set by hand."""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.nn.intervention import WeightSet


def with_weights_set(weights: Tensor, cells: Sequence[WeightSet]) -> Tensor:
    """Weights (…, H, T, S) with some set by hand: head, query, key, weight. The others of the row share what
    is left to 1 in their own proportions, a sink's column among them; where they are all 0 they stay so."""
    weights = weights.clone()
    for head, query in sorted({cell[:2] for cell in cells}):
        of_row = {key: weight for h, q, key, weight in cells if (h, q) == (head, query)}
        row = weights[..., head, query, :]  # a view
        row[..., list(of_row)] = 0.0
        others = row.sum(-1, keepdim=True)
        left = max(1.0 - sum(of_row.values()), 0.0)
        row *= torch.where(others > 0, left / torch.where(others > 0, others, 1.0), 0.0)
        for key, weight in of_row.items():
            row[..., key] = weight
    return weights


def refuse_masked(cells: Sequence[WeightSet], mask: Tensor | None, name: str) -> None:
    """Raises ValueError for a weight above 0 on a key that the mask hides."""
    for head, query, key, weight in cells:
        allowed = None if mask is None else mask.reshape(-1, *mask.shape[-2:])
        if allowed is not None and weight and not allowed[head % len(allowed), query, key]:
            raise ValueError(
                f"The weight of query {query} on key {key} in {name} cannot be set to {weight:g}: the "
                "mask hides that key."
            )
