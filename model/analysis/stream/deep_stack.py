"""The size of the gradient in a deep stack with and without shortcuts, measured by autograd.

The stack is made of our own blocks with random weights. Axes: B batch, T tokens, C width.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor, nn

from model.nn.config import TransformerConfig
from model.nn.layers import Block

Norms = Literal["none", "pre", "post"]
DEEPEST = 48  # blocks


@dataclass(frozen=True)
class DeepStack:
    """A stack to measure; its fields fix weights and input. Raises ValueError for a wrong depth."""

    depth: int = 24  # blocks, each attention and feed-forward
    norms: Norms = "none"
    seed: int = 0
    width: int = 64
    heads: int = 4
    tokens: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= DEEPEST:
            raise ValueError(f"A stack of {self.depth} blocks; it must be 1 to {DEEPEST}.")


@lru_cache(maxsize=64)
def gradient_sizes(stack: DeepStack, *, shortcuts: bool) -> tuple[float, ...]:
    """Length of the gradient at each state of the stream, from the input of the first block to the
    output. The loss is the output along a fixed random direction, so the last length is 1."""
    draws = torch.Generator().manual_seed(stack.seed)  # our own: other threads draw too
    shape = (2, 1, stack.tokens, stack.width)  # start and direction, each (B, T, C)
    start, direction = torch.randn(shape, generator=draws, dtype=torch.float64)
    with torch.enable_grad():
        states = [start.requires_grad_()]
        for block in _blocks(stack, draws):
            states.append(passed(block, states[-1], norms=stack.norms, shortcuts=shortcuts))
        loss = (states[-1] * direction / direction.norm()).sum()
        gradients = torch.autograd.grad(loss, states)
    return tuple(gradient.norm().item() for gradient in gradients)


def passed(block: Block, x: Tensor, *, norms: Norms, shortcuts: bool) -> Tensor:
    """A batch through a block, (B, T, C).

    Args:
        x: (B, T, C).
        norms: before each sub-layer, after each, or nowhere.
        shortcuts: whether each sub-layer adds to what it reads, or takes its place.

    Raises ValueError for a block without a feed-forward layer.
    """
    feed_forward, norm = block.feed_forward, block.feed_forward_norm
    if feed_forward is None or norm is None:
        raise ValueError("This block has no feed-forward layer.")
    for sublayer, own in ((block.self_attention, block.self_norm), (feed_forward, norm)):
        added = sublayer(own(x) if norms == "pre" else x)
        x = x + added if shortcuts else added
        x = own(x) if norms == "post" else x
    return x


def _blocks(stack: DeepStack, draws: torch.Generator) -> list[Block]:
    """Blocks with Xavier-uniform matrices (Glorot and Bengio 2010) and biases of zero, in float64:
    without norms, sizes leave the range of float32."""
    config = TransformerConfig(
        shape="encoder",
        d_vocab=1,
        n_ctx=stack.tokens,
        d_model=stack.width,
        heads=stack.heads,
        encoder_layers=stack.depth,
        d_mlp=4 * stack.width,
        norm_place="post" if stack.norms == "post" else "pre",
    )
    blocks = [Block(config, "encoder", layer).double() for layer in range(stack.depth)]
    for map_ in (part for block in blocks for part in block.modules()):
        if isinstance(map_, nn.Linear):
            nn.init.xavier_uniform_(map_.weight, generator=draws)
            nn.init.zeros_(map_.bias)
    return blocks
