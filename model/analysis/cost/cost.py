"""What one pass costs: numbers kept, operations, and how both grow with the length."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from model.analysis.cost.operations import CostPart, Lengths, operations
from model.arithmetic import sizes
from model.nn.config import TransformerConfig


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


def kept_by_attention(length: int, width: int, heads: int) -> tuple[int, int]:
    """Numbers that one attention layer keeps of a sequence: by a fused kernel, which keeps no table of
    query and key, and step by step. Raises ValueError where the heads do not divide the width."""
    costs = sizes.attention_costs(1, length, width, heads)
    tables = sum(cost.numbers for cost in costs if cost.name in ("Scores", "Scaled", "Weights"))
    everything = sum(cost.numbers for cost in costs)
    return everything - tables, everything
