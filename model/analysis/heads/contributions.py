"""What each head writes to the stream and adds to a logit, how the heads of a sub-layer are joined, and what
each head is needed for: the pass without it.

Axes: token, C width of the model.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.heads.statistics import heads_of
from model.analysis.stream.stream import (
    Contribution,
    contributions,
    embedding_norm,
    lengths,
    weight_and_bias,
)
from model.nn.patches import ablation_hooks
from model.nn.places import Head, Place
from model.run.passes import forward, ids_of, rows_at_once
from model.system.remote import asked
from model.trace.arrays import Array, Wide, read_only
from model.trace.collect import doubled
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
    parts = contributions(model, trace, attention.stack)
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
    feed-forwards counts there ("direct effect", Elhage et al. 2021).

    Args:
        position: of the last token that is read.
        token: the id whose logit it is.

    Raises ValueError for an encoder.
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
    norms = {norm.name: norm for norm in trace.norms}
    for name, summand in trace.summands["decoder"].items():
        rows = np.broadcast_to(summand, trace.residual["decoder"][0].shape)
        yield "embedding", name, None, rows[position]
    if (norm := embedding_norm(trace, "decoder")) is not None:
        yield norm
    for part in contributions(model, trace, "decoder"):
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
        if model.config.norms_sum:
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
    centred = vector - norm.law.mean(vector)
    return np.asarray(centred * norm.inverse_deviation.astype(np.float64)[position] * norm.gamma)


def logit_check(trace: Trace, parts: tuple[StreamPart, ...], position: int, token: int) -> float:
    """|sum of all parts − the model's own logit|.

    Args:
        parts, position, token: of `parts_of_logit`.
    """
    logit = float(trace.require_prediction().after(position)[token])
    return abs(sum(part.effect for part in parts) - logit)


@dataclass(frozen=True, eq=False)
class Merged:
    """The outputs of the heads of one sub-layer, and what becomes of them."""

    outputs: Array  # (head, token, d_v): zero for an ablated head
    written: Array  # (head, token, d_model): each through its own rows of W_O
    bias: Array  # (d_model,): of W_O; zero where it has none
    recorded: Array  # (token, d_model): what the sub-layer wrote

    @property
    def concatenated(self) -> Array:
        """(token, heads · d_v): the outputs side by side."""
        return read_only(np.concatenate(self.outputs, axis=-1))

    @property
    def total(self) -> Array:
        """(token, d_model): the sum of what the heads write, and the bias."""
        return read_only(self.written.sum(0) + self.bias)

    @property
    def check(self) -> float:
        """Largest |total - recorded|."""
        return float(np.abs(self.total - self.recorded).max())

    def by_identity(self) -> "Merged":
        """The same as if W_O were the identity, without a bias. Raises ValueError where no identity has the
        shape of W_O."""
        heads, _, width = self.outputs.shape
        if heads * width != len(self.bias):
            raise ValueError(
                f"W_O maps {heads * width} numbers to {len(self.bias)} here: no identity does so."
            )
        places = np.eye(heads * width, dtype=np.float32).reshape(heads, width, -1)
        return replace(self, written=self.outputs @ places, bias=np.zeros_like(self.bias))


@asked
def merged(model: "Model", trace: Trace, name: str, tokens: slice = slice(None)) -> Merged:
    """The heads of a sub-layer at some tokens.

    Args:
        name: of the attention sub-layer.
        tokens: which of its queries; as it is: all.
    """
    attention = trace.find(name)
    here = replace(attention, output=attention.output[:, tokens])
    outputs = here.output.copy()
    outputs[list(attention.ablated)] = 0.0
    parts = contributions(model, trace, attention.stack)
    received = next(part.written for part in parts if part.name == name)
    return Merged(outputs, head_results(model, here), output_bias(model, name), received[tokens])


# What each head is needed for: one pass over the same text for every head, without that head.
# Axes: R rows of a batch, one ablated head each; T tokens, C width, V vocabulary.

Measure = Literal["probability", "logit", "divergence", "loss", "moved"]


@dataclass(frozen=True, eq=False)
class Ablations:
    """Measures of the passes without one head, for the heads done so far.

    Of a model that predicts: "probability" and "logit" (head, watched token) of the next token at the
    end of the text, "divergence" (head,) there from the unchanged prediction, in nats (KL), and
    "loss" (head,), in nats a token, of a text of two tokens or more. Of an encoder: "moved" (head,),
    the mean distance of the final vectors as a share of their length.
    """

    heads: tuple[Head, ...]
    total: int  # heads of the model
    watched: tuple[int, ...]  # ids of the next tokens that are followed
    measures: Mapping[Measure, Wide]
    unchanged: Mapping[Measure, Wide]  # the same without any ablation: (watched,) or ()

    @property
    def done(self) -> int:
        """How many heads have had their pass."""
        return len(self.heads)

    @property
    def complete(self) -> bool:
        """Whether every head has had its pass."""
        return self.done == self.total

    def change(self, measure: Measure, watched: int = 0) -> Wide:
        """(head,): the measure without the head minus that of the unchanged pass."""
        change = self.measures[measure] - self.unchanged[measure]
        return change[:, watched] if change.ndim > 1 else change


@asked
def ablate_each(
    model: "Model",
    trace: Trace,
    watched: tuple[int, ...],
    turn: Callable[[], AbstractContextManager[object]],
) -> Iterator[Ablations]:
    """One pass for every head of the model over the tokens of a trace, in batches. The interventions of the
    trace hold in every pass. Yields what is known after each batch; a caller that stops ends the work.

    Args:
        watched: ids of next tokens to follow.
        turn: makes a context in which one batch runs.
    """
    heads = heads_of(trace.attention)

    def without(rows: Sequence[Collection[Head]]) -> Tensor:
        hooks, given = ablation_hooks(rows), trace.intervention
        texts = ids_of(model, trace)
        return forward(model, texts, hooks, rows=len(rows), intervention=given).ended

    with turn(), torch.inference_mode():
        unchanged = without([()])
        before = {
            name: values[0]
            for name, values in _measures(trace, unchanged, unchanged, watched).items()
        }
    found: list[Mapping[Measure, Wide]] = []
    rows = rows_at_once(trace, 0 if trace.prediction is None else model.config.d_vocab)
    for start in range(0, len(heads), rows):
        batch = heads[start : start + rows]
        with turn(), torch.inference_mode():
            rows_without = without([[head] for head in batch])
            found.append(_measures(trace, rows_without, unchanged, watched))
        yield Ablations(
            heads=heads[: start + len(batch)],
            total=len(heads),
            watched=watched,
            measures={name: np.concatenate([one[name] for one in found]) for name in before},
            unchanged=before,
        )


def _measures(
    trace: Trace, result: Tensor, unchanged: Tensor, watched: tuple[int, ...]
) -> dict[Measure, Wide]:
    """Each measure of each row, (R, …), beside the one row of the unchanged pass."""
    if trace.prediction is None:
        apart = torch.linalg.vector_norm(doubled(result - unchanged), dim=-1)
        lengths = torch.linalg.vector_norm(doubled(unchanged), dim=-1)
        return {"moved": (apart / lengths).mean(-1).cpu().numpy()}
    logs, before = (doubled(rows[:, -1]).log_softmax(-1) for rows in (result, unchanged))
    measures: dict[Measure, Tensor] = {
        "probability": logs[:, list(watched)].exp(),
        "logit": doubled(result[:, -1, list(watched)]),
        "divergence": F.kl_div(logs, before, reduction="none", log_target=True)
        .sum(-1)
        .clamp(min=0),
    }
    following = [token.id for token in trace.tokens_of("decoder")[1:]]
    if following:
        ids = torch.tensor(following, device=result.device).expand(len(result), -1)  # (R, T)
        logits = result[:, : len(following)].transpose(1, 2)  # (R, V, T)
        measures["loss"] = doubled(F.cross_entropy(logits.float(), ids, reduction="none")).mean(-1)
    return {name: values.cpu().numpy() for name, values in measures.items()}
