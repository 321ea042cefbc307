"""Numbers that are added to the scores of attention, so that a token knows how far away another one is.

Axes: H heads, T query tokens, S key tokens. A distance is the key's position minus the query's: −3 is three
tokens back.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from model.nn.config import Stack, TransformerConfig
from model.nn.positions import PositionKind


def distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """(T, S): position of the key minus position of the query."""
    return torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None]


def alibi_slopes(heads: int) -> list[float]:
    """ALiBi's slope of each head: 1/2, 1/4 … 1/256 for 8 heads (Press et al. 2022, 3).

    Where the number of heads is no power of 2, the rest gets every other slope of twice as many heads.
    """
    whole = 2 ** math.floor(math.log2(heads))
    slopes = [2.0 ** (-8 * number / whole) for number in range(1, whole + 1)]
    return slopes if whole == heads else slopes + alibi_slopes(2 * whole)[::2][: heads - whole]


def distance_buckets(distance: Tensor, count: int, farthest: int, *, two_ways: bool) -> Tensor:
    """T5's bucket of each distance (Raffel et al. 2020, 2.1): one bucket each for short distances, then
    buckets that grow by a factor, and one for everything from `farthest` on. It computes in single precision,
    as T5 does, because rounding decides at the borders.

    Args:
        distance: of any shape, the key's position minus the query's.
        count: buckets in all.
        farthest: in tokens.
        two_ways: one half of the buckets is for keys that come later; else those count as distance 0.
    """
    count = count // 2 if two_ways else count
    start = (distance > 0) * count if two_ways else torch.zeros_like(distance)
    steps = distance.abs() if two_ways else (-distance).clamp(min=0)
    exact = count // 2
    grown = (steps.clamp(min=1).float() / exact).log() / math.log(farthest / exact)
    far = exact + (grown * (count - exact)).long()
    return start + torch.where(steps < exact, steps, far.clamp(max=count - 1))


class AlibiBias(nn.Module):
    """−slope · |distance|, without any weights."""

    def __init__(self, config: TransformerConfig, stack: Stack) -> None:
        super().__init__()
        self.slopes = alibi_slopes(config.heads)

    def forward(self, length: int, device: torch.device) -> Tensor:
        """(H, T, T)."""
        slopes = torch.tensor(self.slopes).to(device, non_blocking=True)
        return -slopes[:, None, None] * distances(length, length, device).abs()


class BucketBias(nn.Module):
    """One learned number for each bucket of distances and each head, the same in all layers of a stack."""

    def __init__(self, config: TransformerConfig, stack: Stack) -> None:
        super().__init__()
        self.farthest = config.farthest
        self.two_ways = stack == "encoder"
        self.table = nn.Embedding(config.buckets, config.heads)

    def forward(self, length: int, device: torch.device) -> Tensor:
        """(H, T, T)."""
        where = distance_buckets(
            distances(length, length, device),
            self.table.num_embeddings,
            self.farthest,
            two_ways=self.two_ways,
        )
        return self.table(where).permute(2, 0, 1)


BIASES: Mapping[PositionKind, type[AlibiBias | BucketBias]] = {
    "alibi": AlibiBias,
    "buckets": BucketBias,
}


def position_bias(config: TransformerConfig, stack: Stack) -> AlibiBias | BucketBias | None:
    """What a stack adds to the scores of its self-attention; None for most models."""
    bias = BIASES.get(config.positions)
    return None if bias is None else bias(config, stack)
