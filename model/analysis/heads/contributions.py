"""What each head writes to the stream, and what each part of the stream adds to a logit.

Axes: token, C width of the model.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from model.analysis.stream.stream import contributions
from model.nn.config import Stack
from model.trace.arrays import Array, read_only
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model
    from model.run.protocols import AttentionLayer

PartKind = Literal["embedding", "head", "bias", "feed_forward", "norm"]
Vector = NDArray[np.float64]  # (C,)


@dataclass(frozen=True)
class Part:
    """One summand of the stream at one token, and what it adds to one logit."""

    kind: PartKind
    name: str  # the summand's, sub-layer's or norm's: "positions", "decoder.0.self"
    head: int | None  # of a head only
    length: float  # Euclidean, of the vector as it was written
    effect: float  # on the logit; all parts together are the logit


def head_writes(model: "Model", attention: Attention) -> Array:
    """(head, token, C): what each head adds to the stream through its slice of W_O."""
    return read_only(
        np.stack([model.head_output(attention, head) for head in range(attention.heads)])
    )


def output_bias(model: "Model", name: str) -> Array:
    """(C,): what W_O's bias adds at every token; zero where there is no bias."""
    bias = dict(_layer(model, name).output.named_parameters()).get("bias")
    if bias is None:
        return read_only(np.zeros(model.config.width, np.float32))
    return read_only(bias.detach().cpu().numpy().copy())


def written_lengths(model: "Model", attention: Attention) -> Array:
    """(head, token): the length of what each head writes."""
    return read_only(np.linalg.norm(head_writes(model, attention).astype(np.float64), axis=-1))


def writes_check(model: "Model", trace: Trace, name: str) -> float:
    """Largest |sum of the heads' writes + bias - what the stream received| of a sub-layer."""
    attention = trace.find(name)
    place = model.config.norm_place
    received = next(
        part.added for part in contributions(trace, attention.stack, place) if part.name == name
    )
    total = head_writes(model, attention).sum(0) + output_bias(model, name)
    return float(np.abs(total - received).max())


def parts_of_logit(model: "Model", trace: Trace, position: int, token: int) -> tuple[Part, ...]:
    """Everything that was added up to the logit of one token of the vocabulary after one position.

    The stream is a sum: embeddings, heads, biases, feed-forwards. Each norm on the way to the logit
    is a linear map once its recorded mean and deviation are held fixed, so each summand can be
    followed through it alone; the beta of each norm is a summand too. Pre-norm models have one such
    norm at the end, post-norm models one after each sub-layer. What a summand changes in later
    attention weights or feed-forwards is counted there ("direct effect", Elhage et al. 2021).
    Raises ValueError for an encoder, which has no logits.
    """
    if trace.prediction is None:
        raise ValueError(f"{model.name} is an encoder: it predicts no next token.")
    sum_ = _Sum(position)
    _embed(sum_, trace)
    place = model.config.norm_place
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
    row, bias = _output_row(model, token)
    parts = sum_.parts(row)
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
        """Each summand through a norm whose statistics are those of the whole sum."""
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
    if norms:  # both stacks of an encoder–decoder share it, and record it in order
        sum_.pass_through(norms[list(trace.states).index(stack)])


def _attend(sum_: _Sum, model: "Model", attention: Attention) -> None:
    at = sum_.position
    here = replace(attention, output=attention.output[:, at : at + 1])  # one token is enough
    for head, written in enumerate(head_writes(model, here)):
        sum_.add("head", attention.name, written[0], head)
    bias = output_bias(model, attention.name)
    if bias.any():
        sum_.add("bias", attention.name, bias)


def _output_row(model: "Model", token: int) -> tuple[Vector, float]:
    """(C,): the row of the output matrix that makes one token's logit, and its bias."""
    module = model.module
    matrix = module.embedding.tokens if module.output is None else module.output
    row: Vector = matrix.weight[token].detach().cpu().numpy().astype(np.float64)
    bias = dict(matrix.named_parameters()).get("bias")
    return row, 0.0 if bias is None else float(bias[token])


def _layer(model: "Model", name: str) -> "AttentionLayer":
    return next(layer for layer in model.module.attentions() if layer.place.name == name)
