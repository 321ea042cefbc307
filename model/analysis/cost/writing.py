"""What a decoder keeps while it writes: the key–value cache, and the scores that it saves."""

from dataclasses import dataclass

import numpy as np

from model.nn.config import TransformerConfig
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.trace import Trace


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


def writing_steps(
    config: TransformerConfig, given: int, count: int, source: int = 0
) -> tuple[WritingStep, ...]:
    """The first `count` steps after so many given tokens, all of which are new in the first step. source:
    tokens of the encoder, whose keys every step reads. A mask saves no score, for it comes after them; a
    cache does, which holds no key that a window hides from the new token."""
    heads, layers = config.heads, config.decoder_layers
    found = []
    for tokens in range(given, given + count):
        whole = heads * layers * (tokens + source)
        new, row = given, whole
        if tokens > given:
            new, row = 1, heads * (sum(keys_read(config, tokens)) + layers * source)
        found.append(WritingStep(tokens, new, new * row, tokens * whole))
    return tuple(found)


def keys_read(config: TransformerConfig, tokens: int) -> list[int]:
    """By layer of the decoder: the keys that are there for the last of so many tokens, with a cache."""
    windows = map(config.window_of, range(config.decoder_layers))
    return [min(tokens, window or tokens) for window in windows]


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
