"""What each part of a model wrote to the residual stream, as rows of a later linear map read it.

A norm is linear once its recorded mean and deviation are held fixed. So rows that read the stream can be
followed back through every norm to whatever wrote there (Elhage et al. 2021, "A Mathematical Framework for
Transformer Circuits"). Axes: T tokens, M means over tokens, R rows, C d_model, H heads, D width of a head.
"""

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from model.analysis.stream.stream import (
    Contribution,
    contributions,
    embedding_norm,
    weight_and_bias,
)
from model.nn.config import Stack
from model.nn.places import Place, head_name, within
from model.trace.arrays import Array, Wide
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Positions = NDArray[np.intp]


class StreamReader:
    """Rows (R, C) that read the stream at some tokens, or means over the tokens. Each step back through a
    norm changes them into the rows that read the same from before it."""

    def __init__(self, rows: Wide, tokens: Positions, means: Wide | None = None) -> None:
        """means (M, len(tokens)): the weights of each mean; None: every token is read alone."""
        self.rows = rows
        self.tokens = tokens
        self.means = means
        self.factor = np.ones((len(tokens), 1))
        self.constant = np.zeros((len(tokens if means is None else means), len(rows)))  # of biases

    def back_through(self, norm: NormRecord) -> None:
        """Back to what a norm read."""
        self.add(norm.beta)
        self.rows = self.rows * norm.gamma
        self.rows = self.rows - norm.law.mean(self.rows)
        self.factor = self.factor * norm.inverse_deviation.astype(np.float64)[self.tokens, None]

    def through(self, part: Contribution) -> "StreamReader":
        """What reads the last map of a sub-layer as this reads what it adds to the stream. Its constants are
        counted here by `take`."""
        if part.norm is None:
            return self
        inner = copy(self)
        inner.back_through(part.norm)
        return inner

    def take(self, inner: "StreamReader") -> None:
        """Counts the biases that another reader met."""
        self.constant = inner.constant

    def add(self, bias: Array) -> None:
        """Counts a vector (C,) that is added here at every token."""
        weights = self.factor if self.means is None else self.means @ self.factor
        self.constant = self.constant + weights * (self.rows @ bias)

    def of(self, vectors: Array) -> Wide:
        """(T, R), or (M, R) for means: what these rows read of vectors (token, C)."""
        return self._read(vectors, self.rows.T)

    def of_heads(self, attention: Attention, output: Array) -> Wide:
        """(H, T, R), or (H, M, R): what these rows read of each head, through W_O (C, H · D)."""
        contexts = attention.output.copy()  # (H, token, D)
        contexts[list(attention.ablated)] = 0.0
        heads, width = len(contexts), contexts.shape[-1]
        if self.means is not None or len(self.tokens) < len(self.rows):
            parts = output.reshape(len(output), heads, width).transpose(1, 2, 0)  # (H, D, C)
            return self._read(contexts, parts) @ self.rows.T
        mapped = self.rows.astype(np.float32) @ output  # (R, H · D)
        return self._read(contexts, mapped.reshape(-1, heads, width).transpose(1, 2, 0))

    def _read(self, vectors: Array, maps: Array | Wide) -> Wide:
        """vectors (…, token, width) at these tokens, or their means, through maps (…, width, R)."""
        vectors = vectors[..., self.tokens, :]
        if self.means is None:
            return np.asarray(self.factor * (vectors @ maps))
        weights = (self.means * self.factor.T).astype(np.float32)
        return np.asarray(weights @ vectors @ maps)


def sub_layers_back(
    model: "Model", trace: Trace, stack: Stack, reader: StreamReader, before: str | None
) -> Iterator[Contribution]:
    """The sub-layers that wrote before another one, the last first.

    Args:
        reader: reads each sub-layer as it wrote; it is changed on the way.
        before: the attention sub-layer whose queries or keys are read; None: the end of the stack.

    Raises ValueError where the stream is no sum: parts of it were put in, or set by hand.
    """
    if trace.intervention.sets_stream:
        raise ValueError(
            "Numbers of this run's stream were set by hand, added, or put in from another sentence, so it is "
            "not the sum of what its layers wrote."
        )
    on_sum = model.config.norms_sum
    norms = {norm.name: norm for norm in trace.norms}
    parts = contributions(model, trace, stack)
    if before is not None:
        parts = parts[: [part.name for part in parts].index(before)]
    final = Place(stack, None, "final").norm
    if before is None and final in norms:
        reader.back_through(norms[final])
    elif before is not None and not on_sum and Place.named(before).norm in norms:
        reader.back_through(norms[Place.named(before).norm])
    for part in reversed(parts):
        if on_sum:
            reader.back_through(norms[Place.named(part.name).norm])
        yield part


def parts_read(
    model: "Model", trace: Trace, stack: Stack, reader: StreamReader, before: str | None
) -> Iterator[tuple[str, Wide]]:
    """Everything that the stream is the sum of, by name, and what the reader reads of it.

    From the last sub-layer back to the embedding; "bias", all biases on the way together, ends it.

    Args:
        reader, before: as in `sub_layers_back`.
    """
    layers = {layer.place.name: layer for layer in model.module.attentions()}
    for part in sub_layers_back(model, trace, stack, reader, before):
        if Place.named(part.name).kind == "feed_forward":
            yield part.name, reader.of(part.added)
            continue
        weight, bias = weight_and_bias(layers[part.name].output)
        inner = reader.through(part)
        heads = inner.of_heads(trace.find(part.name), weight)
        yield from (
            (head_name((part.name, head)), heads[head]) for head in reversed(range(len(heads)))
        )
        inner.add(bias)
        reader.take(inner)
    if (norm := embedding_norm(trace, stack)) is not None:
        reader.back_through(norm)
    for name, summand in reversed(list(trace.summands[stack].items())):
        rows = np.broadcast_to(summand, trace.residual[stack][0].shape)
        yield name.removesuffix("s"), reader.of(rows)
    yield "bias", reader.constant


def check_model(model: "Model", trace: Trace) -> None:
    """Raises ValueError for a trace of another model."""
    if trace.model != model.name:
        raise ValueError(f"This trace is of {trace.model}, not of {model.name}.")


def checked_head(model: "Model", trace: Trace, name: str | int, head: int) -> tuple[Attention, int]:
    """The attention record of a head, and its number from 0.

    Args:
        name: of the attention sub-layer, or the number of its layer.

    Raises ValueError where model, trace and head do not fit.
    """
    check_model(model, trace)
    attention = trace.find(name)
    return attention, within(head, attention.heads, f"{attention.name} has heads")
