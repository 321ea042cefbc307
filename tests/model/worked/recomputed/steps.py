"""What a second computation is, and what several of them need.

Each is a function named as its example: the inputs by name, to the result of every step.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

Inputs = dict[str, Tensor]
Steps = list[Tensor]


def attend(query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Tensor:
    return scaled_dot_product_attention(query[None], key[None], value[None], is_causal=causal)[0]


def weights_of(query: Tensor, key: Tensor, causal: bool = False) -> Tensor:
    """The weights are the output where the values are one-hot."""
    return attend(query, key, torch.eye(len(key), dtype=torch.float64), causal)


def parameter_count(*modules: nn.Module) -> int:
    return sum(part.numel() for module in modules for part in module.parameters())
