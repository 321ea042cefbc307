"""What each part of a model wrote to the residual stream, as rows of a later linear map read it.

A norm is linear once its recorded mean and deviation are held fixed. So rows that read the stream can be
followed back through every norm to whatever wrote there (Elhage et al. 2021, "A Mathematical Framework for
Transformer Circuits"). In float64. Axes: T tokens, R rows, C d_model, H heads, D width of a head.
"""

from collections.abc import Iterator
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
from model.nn.places import Place, head_name
from model.trace.arrays import Array, Wide
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Positions = NDArray[np.intp]


class Reader:
    """Rows (R, C) that read the stream at some tokens. Each step back through a norm changes them into
    the rows that read the same from before it."""

    def __init__(self, rows: Wide, tokens: Positions) -> None:
        self.rows = rows
        self.tokens = tokens
        self.factor = np.ones((len(tokens), 1))
        self.constant = np.zeros((len(tokens), len(rows)))  # (T, R): what biases on the way add

    def back_through(self, norm: NormRecord) -> None:
        """Back to what a norm read."""
        self.add(norm.beta)
        self.rows = self.rows * norm.gamma
        if norm.kind == "layer":
            self.rows = self.rows - self.rows.mean(-1, keepdims=True)
        self.factor = self.factor * norm.inverse_deviation.astype(np.float64)[self.tokens, None]

    def add(self, bias: Array) -> None:
        """Counts a vector (C,) that is added here at every token."""
        self.constant = self.constant + self.factor * (self.rows @ bias)

    def of(self, vectors: Array) -> Wide:
        """(T, R): what these rows read of vectors (token, C)."""
        read: Wide = self.factor * (vectors[self.tokens] @ self.rows.T)
        return read

    def of_heads(self, attention: Attention, output: Array) -> Wide:
        """(H, T, R): what these rows read of each head, through W_O (C, H · D)."""
        contexts = attention.output[:, self.tokens]  # (H, T, D)
        contexts[list(attention.ablated)] = 0.0
        parts = output.reshape(len(output), attention.heads, -1).transpose(1, 2, 0)  # (H, D, C)
        if len(self.tokens) < len(self.rows):
            return np.asarray(self.factor * ((contexts @ parts) @ self.rows.T))
        mapped = parts @ self.rows.T.astype(np.float32)  # (H, D, R)
        return np.asarray(self.factor * (contexts @ mapped.astype(np.float64)))


def sub_layers_back(
    model: "Model", trace: Trace, stack: Stack, reader: Reader, before: str | None
) -> Iterator[Contribution]:
    """The sub-layers that wrote before another one, the last first; the reader reads each as it wrote.

    before: the attention sub-layer whose queries or keys are read; None: the end of the stack.
    """
    place = model.config.norm_place
    norms = {norm.name: norm for norm in trace.norms}
    parts = contributions(trace, stack, place)
    if before is not None:
        parts = parts[: [part.name for part in parts].index(before)]
    final = Place(stack, None, "final").norm
    if before is None and final in norms:
        reader.back_through(norms[final])
    elif before is not None and place == "pre":
        reader.back_through(norms[Place.named(before).norm])
    for part in reversed(parts):
        if place == "post":
            reader.back_through(norms[Place.named(part.name).norm])
        yield part


def parts_read(
    model: "Model", trace: Trace, stack: Stack, reader: Reader, before: str | None
) -> Iterator[tuple[str, Wide]]:
    """Everything that the stream is the sum of, by name, and what the reader reads of it, (T, R).

    From the last sub-layer back to the embedding; "bias", all biases on the way together, ends it.
    """
    for part in sub_layers_back(model, trace, stack, reader, before):
        if Place.named(part.name).kind == "feed_forward":
            yield part.name, reader.of(part.added)
            continue
        weight, bias = weight_and_bias(model.layer(part.name).output)
        heads = reader.of_heads(trace.find(part.name), weight)
        yield from (
            (head_name((part.name, head)), heads[head]) for head in reversed(range(len(heads)))
        )
        reader.add(bias)
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


def checked_head(model: "Model", trace: Trace, name: str, head: int) -> Attention:
    """The attention record of a head. Raises ValueError where model, trace and head do not fit."""
    check_model(model, trace)
    attention = trace.find(name)
    if not 0 <= head < attention.heads:
        raise ValueError(f"{name} has heads 0 to {attention.heads - 1}, not {head}.")
    return attention
