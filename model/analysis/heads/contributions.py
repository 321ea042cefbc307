"""What each head writes to the stream, and what each part of the stream adds to a logit.

Axes: token, C width of the model.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from model.analysis.stream.stream import contributions, lengths
from model.nn.config import Stack
from model.trace.arrays import Array, read_only
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from torch import nn

    from model.run.model import Model

PartKind = Literal["embedding", "head", "bias", "feed_forward", "norm"]
Vector = NDArray[np.float64]  # (C,)


@dataclass(frozen=True)
class Part:
    """One summand of the stream at one token, and what it adds to one logit."""

    kind: PartKind
    name: str  # of the summand, sub-layer or norm: "positions", "decoder.0.self"
    head: int | None  # where it is a head
    length: float  # Euclidean, of the vector as it was written
    effect: float  # on the logit


def head_writes(model: "Model", attention: Attention) -> Array:
    """(head, token, C): what each head adds to the stream through its slice of W_O."""
    return read_only(
        np.stack([model.head_output(attention, head) for head in range(attention.heads)])
    )


def output_bias(model: "Model", name: str) -> Array:
    """(C,): what W_O's bias adds at every token; zero without a bias."""
    bias = _bias(model.layer(name).output)
    return read_only(np.zeros(model.config.width, np.float32) if bias is None else bias)


def _bias(output: "nn.Module") -> Array | None:
    bias = dict(output.named_parameters()).get("bias")
    return None if bias is None else bias.detach().cpu().numpy().copy()


def written_lengths(model: "Model", attention: Attention) -> Array:
    """(head, token): the length of what each head writes."""
    return lengths(head_writes(model, attention))


def writes_check(model: "Model", trace: Trace, name: str) -> float:
    """Largest |sum of the heads' writes + bias - what the stream received| of a sub-layer."""
    attention = trace.find(name)
    parts = contributions(trace, attention.stack, model.config.norm_place)
    received = next(part.added for part in parts if part.name == name)
    total = head_writes(model, attention).sum(0) + output_bias(model, name)
    return float(np.abs(total - received).max())


def parts_of_logit(model: "Model", trace: Trace, position: int, token: int) -> tuple[Part, ...]:
    """The parts of one token's logit after one position; together they are that logit.

    The stream is a sum of embeddings, heads, biases and feed-forwards. With its recorded mean and
    deviation each norm on the way to the logit is a linear map, so each summand goes through it
    alone; the beta of a norm is a summand too. Pre-norm models have one such norm at the end,
    post-norm models one after each sub-layer. What a summand changes in later attention weights or
    feed-forwards counts there ("direct effect", Elhage et al. 2021). Raises ValueError for an encoder.
    """
    if trace.prediction is None:
        raise ValueError(f"{model.name} is an encoder: it predicts no next token.")
    sum_, place = _Sum(position), model.config.norm_place
    _embed(sum_, trace)
    norms = {norm.name: norm for norm in trace.norms}
    for part in contributions(trace, "decoder", place):
        if part.name.endswith(".feed_forward"):
            sum_.add("feed_forward", part.name, part.added[position])
        else:
            _attend(sum_, model, trace.find(part.name))
        if place == "post":
            sum_.pass_through(norms[f"{part.name}.norm"])
    if place == "pre":
        sum_.pass_through(norms["decoder.final.norm"])
    output: nn.Linear | nn.Embedding = model.module.output or model.module.embedding.tokens
    parts = sum_.parts(output.weight[token].detach().cpu().numpy().astype(np.float64))
    biases = _bias(output)
    bias = 0.0 if biases is None else float(biases[token])
    return (*parts, Part("bias", "output", None, abs(bias), bias)) if bias else parts


def logit_check(trace: Trace, parts: tuple[Part, ...], position: int, token: int) -> float:
    """|sum of all parts - the model's own logit|."""
    if trace.prediction is None:
        raise ValueError(f"{trace.model} is an encoder: it predicts no next token.")
    logit = float(trace.prediction.after(position)[token])
    return abs(sum(part.effect for part in parts) - logit)


class _Sum:
    """The summands of the stream at one token, followed through the norms."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._named: list[tuple[PartKind, str, int | None, float]] = []
        self._vectors: list[Vector] = []

    def add(self, kind: PartKind, name: str, vector: Array, head: int | None = None) -> None:
        wide = vector.astype(np.float64)
        self._named.append((kind, name, head, float(np.linalg.norm(wide))))
        self._vectors.append(wide)

    def pass_through(self, norm: NormRecord) -> None:
        """Each summand through a norm, with the statistics of the whole sum."""
        factor = norm.inverse_deviation.astype(np.float64)[self.position]
        centred = norm.kind == "layer"
        self._vectors = [
            (vector - (vector.mean() if centred else 0.0)) * factor * norm.gamma
            for vector in self._vectors
        ]
        if norm.beta.any():
            self.add("norm", norm.name, norm.beta)

    def parts(self, row: Vector) -> tuple[Part, ...]:
        return tuple(
            Part(*named, effect=float(vector @ row))
            for named, vector in zip(self._named, self._vectors, strict=True)
        )


def _embed(sum_: _Sum, trace: Trace) -> None:
    stack: Stack = "decoder"
    for name, summand in trace.summands[stack].items():
        rows = np.broadcast_to(summand, trace.states[stack][0].shape)
        sum_.add("embedding", name, rows[sum_.position])
    norms = [norm for norm in trace.norms if norm.name.endswith(".embedding.norm")]
    if norms:  # one for each stack, in order
        sum_.pass_through(norms[list(trace.states).index(stack)])


def _attend(sum_: _Sum, model: "Model", attention: Attention) -> None:
    at = sum_.position
    here = replace(attention, output=attention.output[:, at : at + 1])  # one token is enough
    for head, written in enumerate(head_writes(model, here)):
        sum_.add("head", attention.name, written[0], head)
    bias = output_bias(model, attention.name)
    if bias.any():
        sum_.add("bias", attention.name, bias)
