"""What one pass costs, and what writing costs: numbers kept, operations, the key–value cache, and how they
grow."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.cost.operations import CostPart, Lengths, operations
from model.arithmetic import sizes
from model.nn.config import TransformerConfig
from model.trace.arrays import Array, BoolArray
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.nn.key_value_cache import Eviction


@dataclass(frozen=True)
class Memory:
    """Numbers, not bytes, that a pass needs while every result is kept, as in training."""

    weights: int
    activations: int  # results of all operations, without the attention matrices
    matrices: int  # scores, scaled scores and weights of every head; a fused kernel keeps none
    cache: int  # keys and values of every layer, kept while text is written; 0 for an encoder


def memory(config: TransformerConfig, lengths: Lengths) -> Memory:
    """How many numbers a pass keeps, by kind."""
    kept = Counter[bool]()
    for step in operations(config, lengths):
        kept["key" in step.axes] += step.times * step.numbers
    weights = sum(sizes.parameter_parts(config).values())
    return Memory(weights, kept[False], kept[True], key_value_cache(config, lengths))


def key_value_cache(config: TransformerConfig, lengths: Lengths) -> int:
    """Numbers in the keys and values of all decoder layers, of the source too in cross-attention. With
    them a new token needs only its own pass."""
    tokens = lengths.of("decoder", config.source)
    if config.shape == "encoder-decoder":
        tokens += lengths.tokens
    if config.key_latent:  # keys and values are made again of what is kept (DeepSeek-V2, 2024)
        return (
            config.decoder_layers * lengths.batch * tokens * (config.key_latent + config.turned_key)
        )
    kept = config.key_head_count * config.head_width
    return 2 * config.decoder_layers * lengths.batch * tokens * kept


def flops_by_part(config: TransformerConfig, lengths: Lengths) -> dict[CostPart, int]:
    """Operations of a pass by part, in order; parts without any are left out."""
    found = Counter[CostPart]()
    for step in operations(config, lengths):
        if step.flops:
            found[step.part] += step.times * step.flops
    return dict(found)


@dataclass(frozen=True)
class Growth:
    """A cost as a function of the length n: quadratic·n² + linear·n, exactly."""

    quadratic: int
    linear: int

    @property
    def crossing(self) -> float | None:
        """The length at which both terms are equal; None where nothing grows with n²."""
        return self.linear / self.quadratic if self.quadratic else None


def growth(cost: Callable[[Lengths], int], batch: int) -> Growth:
    """Both terms of a cost, from its values at lengths 1 and 2: a + b and 4a + 2b."""
    one, two = cost(Lengths(batch, 1)), cost(Lengths(batch, 2))
    quadratic = (two - 2 * one) // 2
    return Growth(quadratic, one - quadratic)


def total_flops(config: TransformerConfig, lengths: Lengths) -> int:
    return sum(flops_by_part(config, lengths).values())


def total_results(config: TransformerConfig, lengths: Lengths) -> int:
    """Numbers in all results of a pass, the attention matrices included."""
    needed = memory(config, lengths)
    return needed.activations + needed.matrices


@dataclass(frozen=True)
class WritingStep:
    """One step of writing: the decoder has read `tokens`, of which `new` since the step before."""

    tokens: int
    new: int
    cached: int  # scores of all layers and heads, where earlier keys and values are kept
    uncached: int  # the same where every token is passed again

    @property
    def kept(self) -> int:
        """Tokens whose keys and values are there from the steps before."""
        return self.tokens - self.new


Windows = Sequence[
    int | None
]  # keys that a query reads at most, by layer of the decoder; None: all


def windows_of(trace: Trace) -> tuple[int | None, ...]:
    """The windows that a pass ran with."""
    return tuple(one.window for one in _read(trace) if one.kind == "causal")


def writing_steps(
    config: TransformerConfig,
    windows: Windows,
    given: int,
    count: int,
    source: int = 0,
    eviction: "Eviction | None" = None,
) -> tuple[WritingStep, ...]:
    """The first steps of writing. A mask saves no score, for it comes after them; a cache does, which holds
    no key that a window hides from the new token, or that an eviction dropped.

    Args:
        given: tokens before the first step, all of which are new in it.
        count: steps.
        source: tokens of the encoder, whose keys every step reads.
        eviction: None: the cache drops nothing by itself.
    """
    heads, layers = config.heads, config.decoder_layers
    found = []
    for tokens in range(given, given + count):
        whole = heads * layers * (tokens + source)
        new, row = given, whole
        if tokens > given:
            there = keys_there(windows, tokens, eviction).sum()
            new, row = 1, heads * (int(there) + layers * source)
        found.append(WritingStep(tokens, new, new * row, tokens * whole))
    return tuple(found)


def keys_there(windows: Windows, tokens: int, eviction: "Eviction | None" = None) -> BoolArray:
    """(layer, token): of each layer of the decoder, whose keys are there for the last of so many tokens, with
    a cache."""
    behind = tokens - 1 - np.arange(tokens)  # tokens between each key and the last one
    here = np.array([behind < (window or tokens) for window in windows])
    if eviction is None or eviction.window is None:
        return here
    return here & ((behind < eviction.window) | (np.arange(tokens) < eviction.first))


@dataclass(frozen=True)
class Apart:
    """How far two passes are apart in the keys and values of the tokens that both read."""

    difference: float
    largest: float  # of the compared numbers
    numbers: int

    @property
    def agree(self) -> bool:
        """Whether they are equal but for rounding in single precision."""
        return self.difference < 1e-5 * self.largest


def apart(shorter: Trace, longer: Trace) -> Apart:
    """The keys and values of every token of the shorter pass against the longer one, in all layers of the
    decoder. Raises ValueError where the longer text does not begin with the shorter one."""
    ids = [[token.id for token in trace.tokens_of("decoder")] for trace in (shorter, longer)]
    if shorter.model != longer.model or ids[1][: len(ids[0])] != ids[0]:
        raise ValueError("The longer text does not begin with the shorter one.")
    pairs = [
        (before, after[:, : before.shape[1]])
        for one, other in zip(_read(shorter), _read(longer), strict=True)
        for before, after in zip(_kept(one), _kept(other), strict=True)
    ]
    return Apart(
        max(float(np.abs(after - before).max()) for before, after in pairs),
        max(float(np.abs(before).max()) for before, _ in pairs),
        sum(before.size for before, _ in pairs),
    )


def _read(trace: Trace) -> list[Attention]:
    return [attention for attention in trace.attention if attention.stack == "decoder"]


def _kept(attention: Attention) -> tuple[Array, Array]:
    """Keys and values, (key head, token, d_k) each."""
    _, key, value = attention.vectors
    return key, value
