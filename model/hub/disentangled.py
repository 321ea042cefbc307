"""The terms of DeBERTa's disentangled attention: each by the library's own function.

Axes: H heads, T tokens, D width of a head.
"""

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

TERMS = {"c2p": "content → position", "p2c": "position → content"}


def disentangled_terms(
    body: nn.Module, attention: Any, query: Tensor, key: Tensor
) -> dict[str, Tensor]:
    """(H, T, T) each: what a query adds for a distance, and a distance for a key, as they are added to the
    scaled scores. query and key (H, T, D)."""
    encoder: Any = next(part for part in body.modules() if hasattr(part, "get_rel_embedding"))
    used = [term for term in TERMS if term in attention.pos_att_type]
    found = {}
    with torch.inference_mode():
        positions = encoder.get_rel_embedding()
        distances = encoder.get_rel_pos(query)
        for term in used:
            alone = copy(attention)  # its weights are shared
            alone.pos_att_type = [term]
            found[TERMS[term]] = alone.disentangled_attention_bias(
                query, key, distances, positions, 1 + len(used)
            )
    return found
