"""What one pass costs: numbers kept, operations, and how both grow with the length."""

from collections.abc import Callable
from dataclasses import dataclass

from model.analysis.cost.operations import Lengths, Part, operations
from model.arithmetic import sizes
from model.nn.config import TransformerConfig


@dataclass(frozen=True)
class Memory:
    """Numbers, not bytes, that a pass needs while every result is kept, as in training."""

    weights: int
    activations: int  # results of all operations, without the attention matrices
    matrices: (
        int  # scores, scaled scores and weights of every head: what a fused kernel never keeps
    )
    cache: int  # keys and values of every layer, kept while text is written; 0 for an encoder


def memory(config: TransformerConfig, lengths: Lengths) -> Memory:
    """How many numbers a pass keeps, by what they are."""
    kept = operations(config, lengths)
    matrices = sum(step.times * step.numbers for step in kept if "key" in step.axes)
    everything = sum(step.times * step.numbers for step in kept)
    return Memory(
        weights=sum(sizes.parameter_parts(config).values()),
        activations=everything - matrices,
        matrices=matrices,
        cache=key_value_cache(config, lengths),
    )


def key_value_cache(config: TransformerConfig, lengths: Lengths) -> int:
    """Keys and values of the decoder: two vectors of all key heads a token and layer, and as many of
    the source where there is cross-attention. Kept so that a new token needs only its own pass."""
    tokens = lengths.of("decoder", config.source)
    if config.shape == "encoder-decoder":
        tokens += lengths.tokens
    kept = config.key_head_count * config.head_width
    return 2 * config.decoder_layers * lengths.batch * tokens * kept


def flops_by_part(config: TransformerConfig, lengths: Lengths) -> dict[Part, int]:
    """Operations of a pass by part, in order; parts without any are left out."""
    found: dict[Part, int] = {}
    for step in operations(config, lengths):
        if step.flops:
            found[step.part] = found.get(step.part, 0) + step.times * step.flops
    return found


@dataclass(frozen=True)
class Growth:
    """A cost as a function of the length n: quadratic·n² + linear·n. Exact, in whole numbers."""

    quadratic: int
    linear: int

    @property
    def crossing(self) -> float | None:
        """The length at which both parts are equal; None where nothing grows with n²."""
        return self.linear / self.quadratic if self.quadratic else None


def growth(cost: Callable[[Lengths], int], batch: int) -> Growth:
    """The two parts of a cost, from its values at lengths 1 and 2: a + b and 4a + 2b."""
    one, two = cost(Lengths(batch, 1)), cost(Lengths(batch, 2))
    quadratic = (two - 2 * one) // 2
    return Growth(quadratic, one - quadratic)


def total_flops(config: TransformerConfig, lengths: Lengths) -> int:
    """Operations of a whole pass."""
    return sum(flops_by_part(config, lengths).values())


def total_results(config: TransformerConfig, lengths: Lengths) -> int:
    """Numbers of all results of a pass, the attention matrices included."""
    needed = memory(config, lengths)
    return needed.activations + needed.matrices
