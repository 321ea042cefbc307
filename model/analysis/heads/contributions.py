"""What each head writes to the stream, and what each part of the stream adds to a logit.

Axes: token, C width of the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from model.analysis.stream.stream import (
    Contribution,
    contributions,
    embedding_norm,
    lengths,
    weight_and_bias,
)
from model.nn.places import Place
from model.system.elsewhere import asked
from model.trace.arrays import Array, Wide, read_only
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace
from model.trace.unproven import require

if TYPE_CHECKING:
    from model.run.model import Model

PartKind = Literal["embedding", "head", "bias", "feed_forward", "norm"]


@dataclass(frozen=True)
class StreamPart:
    """One summand of the stream at one token, and what it adds to one logit."""

    kind: PartKind
    name: str  # of the summand, sub-layer or norm: "positions", "decoder.0.self"
    head: int | None  # where it is a head
    length: float  # Euclidean, of the vector as it was written
    effect: float  # on the logit


@asked
def head_results(model: "Model", attention: Attention) -> Array:
    """(head, token, C): what each head adds to the stream through its slice of W_O."""
    return read_only(
        np.stack([model.head_output(attention, head) for head in range(attention.heads)])
    )


@asked
def output_bias(model: "Model", name: str) -> Array:
    """(C,): what W_O's bias adds at every token; zero without a bias."""
    _, bias = weight_and_bias(model.layer(name).output)
    return read_only(bias.copy())


@asked
def result_lengths(model: "Model", attention: Attention) -> Array:
    """(head, token): the length of what each head writes."""
    return lengths(head_results(model, attention))


@asked
def results_check(model: "Model", trace: Trace, name: str) -> float:
    """Largest |sum of the head results + bias - what the sub-layer wrote|, as the stream received it or as
    a norm on the way to the stream read it."""
    attention = trace.find(name)
    parts = contributions(trace, attention.stack, model.config.norm_place)
    received = next(part.written for part in parts if part.name == name)
    total = head_results(model, attention).sum(0) + output_bias(model, name)
    return float(np.abs(total - received).max())


@asked
def parts_of_logit(
    model: "Model", trace: Trace, position: int, token: int
) -> tuple[StreamPart, ...]:
    """The parts of one token's logit after one position; together they are that logit.

    The stream is a sum of embeddings, heads, biases and feed-forwards. With its recorded mean and
    deviation each norm on the way to the logit is a linear map, so each summand goes through it
    alone; the beta of a norm is a summand too. Pre-norm models have one such norm at the end,
    post-norm models one after each sub-layer. What a summand changes in later attention weights or
    feed-forwards counts there ("direct effect", Elhage et al. 2021). Raises ValueError for an encoder.
    """
    trace.require_prediction()
    require(model.name, "logit_parts", trace.unproven)
    named: list[tuple[PartKind, str, int | None, float]] = []
    vectors: list[Wide] = []  # (C,) each

    def add(kind: PartKind, name: str, head: int | None, vector: Array) -> None:
        vectors.append(vector.astype(np.float64))
        named.append((kind, name, head, float(np.linalg.norm(vectors[-1]))))

    for found in _summands(model, trace, position):
        if not isinstance(found, NormRecord):
            add(*found)
            continue
        vectors = [_normed(vector, found, position) for vector in vectors]
        if found.beta.any():
            add("norm", found.name, None, found.beta)
    weight, biases = weight_and_bias(model.module.output or model.module.embedding.tokens)
    factor = model.module.logit_factor
    row = factor * weight[token].astype(np.float64)
    parts = [
        StreamPart(*each, effect=float(vector @ row))
        for each, vector in zip(named, vectors, strict=True)
    ]
    if bias := factor * float(biases[token]):
        parts.append(StreamPart("bias", "output", None, abs(bias), bias))
    return tuple(parts)


def _summands(
    model: "Model", trace: Trace, position: int
) -> Iterator[tuple[PartKind, str, int | None, Array] | NormRecord]:
    """What is added to the stream of the decoder at one token, and each norm that the sum goes through,
    in order."""
    place, norms = model.config.norm_place, {norm.name: norm for norm in trace.norms}
    for name, summand in trace.summands["decoder"].items():
        rows = np.broadcast_to(summand, trace.residual["decoder"][0].shape)
        yield "embedding", name, None, rows[position]
    if (norm := embedding_norm(trace, "decoder")) is not None:
        yield norm
    for part in contributions(trace, "decoder", place):
        where = Place.named(part.name)
        if where.kind == "feed_forward":
            yield "feed_forward", part.name, None, part.added[position]
        else:
            attention = trace.find(part.name)
            here = replace(attention, output=attention.output[:, position : position + 1])
            for head, result in enumerate(head_results(model, here)):
                yield "head", part.name, head, _added(result[0], part, position)
            if (bias := output_bias(model, part.name)).any():
                yield "bias", part.name, None, _added(bias, part, position)
            if part.norm is not None and part.norm.beta.any():
                yield "norm", part.norm.name, None, part.norm.beta
        if place == "post":
            yield norms[where.norm]
    final = norms.get(Place("decoder", None, "final").norm)
    if final is not None:
        yield final


def _added(vector: Array, part: Contribution, position: int) -> Array:
    """What the stream received of a summand (C,) of what a sub-layer wrote."""
    if part.norm is None:
        return vector
    return np.asarray(_normed(vector.astype(np.float64), part.norm, position), np.float32)


def _normed(vector: Wide, norm: NormRecord, position: int) -> Wide:
    """One summand (C,) through a norm, with the statistics of the whole sum."""
    centred = vector - vector.mean() if norm.kind == "layer" else vector
    return np.asarray(centred * norm.inverse_deviation.astype(np.float64)[position] * norm.gamma)


def logit_check(trace: Trace, parts: tuple[StreamPart, ...], position: int, token: int) -> float:
    """|sum of all parts - the model's own logit|."""
    logit = float(trace.require_prediction().after(position)[token])
    return abs(sum(part.effect for part in parts) - logit)
