"""Feed-forward layers: activation curves, neurons, and dropout at each of its places."""

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.analysis.stream.stream import Contribution, contributions, lengths
from model.nn.activations import ACTIVATION_LAWS, GATED, Activation
from model.nn.config import TransformerConfig
from model.nn.places import Place
from model.nn.recorder import Recorder, recording
from model.system.remote import asked
from model.system.words import Words
from model.trace.arrays import Array, Wide, read_only
from model.trace.collect import numbers_of
from model.trace.records import Attention, FeedForwardRecord
from model.trace.trace import Trace
from model.trace.unproven import NotShownError

if TYPE_CHECKING:
    from torch import Tensor

    from model.run.model import Model

say = Words("analysis.stream_feed_forward")


def bends(activation: Activation, before: Array) -> Wide:
    """How much an activation f bends each value x: the smaller of |f(x)| and |x − f(x)|. It is 0 where f
    lets nothing of x through, and where it lets x through as it is."""
    x = before.astype(np.float64)
    after = ACTIVATION_LAWS[activation].value(x)
    return np.minimum(np.abs(after), np.abs(x - after))


def activation_check(activation: Activation, before: Array, hidden: Array) -> float | None:
    """Largest |f(before) - hidden| over tokens and neurons, with f computed in float64.

    None for a gated layer, whose `hidden` also holds the values of a second map.
    """
    if activation in GATED:
        return None
    import torch  # for its error function; torch takes seconds to import: pages are drawn first

    x = torch.tensor(before, dtype=torch.float64)
    if activation == "gelu":
        expected = x * torch.special.ndtr(x)
    else:
        expected = torch.tensor(ACTIVATION_LAWS[activation].value(x.numpy()))
    return float((expected - torch.tensor(hidden)).abs().max())


def flat_share(activation: Activation, before: Array, limit: float = 0.05) -> float:
    """The share of the values at which the activation's slope, by autograd, is within ±limit."""
    import torch

    from model.nn.layers import ACTIVATIONS

    with torch.enable_grad():
        x = torch.tensor(before, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(ACTIVATIONS[activation](x).sum(), x)
    return float((slope.abs() < limit).double().mean())


def strongest(hidden: Array, count: int) -> NDArray[np.intp]:
    """At most `count` neurons with the largest |activation| on any token, the strongest first; ties
    keep their order. hidden: (token, d_mlp)."""
    return np.argsort(-np.abs(hidden).max(0), kind="stable")[:count]


class NeuronStatistics(NamedTuple):
    """One layer's neurons on one text."""

    below_zero: float  # share of values below 0 before the activation
    mean_before: float


def neuron_statistics(record: FeedForwardRecord) -> NeuronStatistics:
    before = record.before
    return NeuronStatistics(
        below_zero=float((before < 0).mean()), mean_before=float(before.mean(dtype=np.float64))
    )


class Histogram(NamedTuple):
    """Shares of all values in bins of equal width."""

    edges: Wide  # (bin + 1,)
    shares: Wide  # (bin,): of all values, those outside included
    outside: int  # values beyond the ends
    total: int
    reach: tuple[float, float]  # of all values


def histogram(values: Array, *, least: float = 4.0, bins: int = 80) -> Histogram:
    """Where the values lie: from -least to least, and on to the 0.1th and 99.9th percentile where
    those lie beyond."""
    low, high = np.percentile(values, [0.1, 99.9])
    edges = np.linspace(min(float(low), -least), max(float(high), least), bins + 1)
    counts, _ = np.histogram(values, edges)
    outside, reach = int(values.size - counts.sum()), (float(values.min()), float(values.max()))
    return Histogram(edges, counts / values.size, outside, values.size, reach)


class Dropped(NamedTuple):
    """Values after dropout, and which of them it kept."""

    values: Wide
    kept: NDArray[np.bool_]


def dropped(values: Array, rate: float, seed: int | tuple[int, ...]) -> Dropped:
    """Each value becomes 0 with probability `rate`; the rest is divided by 1 - rate, which keeps the
    mean on average over seeds. A seed fixes the draw.

    Source: Srivastava et al. 2014. Raises ValueError unless 0 <= rate < 1.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"The dropout rate is {rate:g}; it must be at least 0 and below 1.")
    kept = np.random.default_rng(seed).random(values.shape) >= rate
    return Dropped(np.where(kept, values / (1.0 - rate), 0.0), kept)


def mean_over_draws(values: Array, rate: float, draws: int) -> float:
    """The mean of the values after dropout, averaged over the seeds 0 to draws - 1."""
    return float(np.mean([dropped(values, rate, seed).values.mean() for seed in range(draws)]))


# Dropout at each of its places in training, and what it changes in the residual stream.
# The model itself runs in evaluation. What follows a place up to the next sum is linear, so the change is
# exact.

LARGEST = 50_000_000  # parameters of a model that is copied for a pass in training mode


@dataclass(frozen=True, eq=False)
class Effect:
    """What one draw changes in the stream, after the sum of a sub-layer. after: without dropout."""

    change: Array  # (token, d_model)
    after: Array  # (token, d_model)

    @property
    def shares(self) -> Array:
        """(token,): length of the change by the length of the stream."""
        return read_only(lengths(self.change) / np.maximum(lengths(self.after), 1e-9))


def of_embedding(values: Array, found: Dropped) -> Effect:
    """Dropout on the embedding: the stream before the first layer. values (token, d_model)."""
    return Effect(read_only(found.values - values), values)


def of_output(part: Contribution, found: Dropped) -> Effect:
    """Dropout on what a sub-layer adds, before the shortcut."""
    return Effect(read_only(found.values - part.added), read_only(part.before + part.added))


@asked
def of_neurons(model: "Model", part: Contribution, hidden: Array, found: Dropped) -> Effect:
    """Dropout on the hidden values of a feed-forward layer.

    Args:
        part: what the layer read and wrote.
        hidden: (token, d_mlp), without dropout.
        found: the same after it.
    """
    change = _mapped(found.values - hidden, model.module.w_out(part.name).weight)
    return Effect(change, read_only(part.before + part.added))


@asked
def of_weights(
    model: "Model", attention: Attention, part: Contribution, rate: float, seed: int
) -> Effect:
    """Dropout on the weights of all heads of a sub-layer, as `head_dropped` draws it for each.

    Args:
        attention, part: the record of the sub-layer, and what it read and wrote.
        rate: the share that is dropped, from 0 to below 1.
    """
    context = [
        (head not in attention.ablated)
        * (head_dropped(attention, head, rate, seed).values - attention.weights(head))
        @ attention.value[head].astype(np.float64)
        for head in range(attention.heads)
    ]
    change = _mapped(np.concatenate(context, -1), model.layer(part.name).output.weight)
    return Effect(change, read_only(part.before + part.added))


def head_dropped(attention: Attention, head: int, rate: float, seed: int) -> Dropped:
    """The weights of one head after dropout.

    Args:
        rate: the share that is dropped, from 0 to below 1.
        seed: with the number of the head it fixes the draw, so that each head has its own.
    """
    return dropped(attention.weights(head), rate, (seed, head))


@asked
def part_named(model: "Model", trace: Trace, name: str) -> Contribution:
    """What the sub-layer of this name adds to the stream."""
    stack = Place.named(name).stack
    if model.config.norms_output:
        raise NotShownError(
            f"A norm stands on what each sub-layer of {model.name} writes, so what dropout inside of it does "
            "to the stream is not shown."
        )
    parts = contributions(model, trace, stack)
    return next(part for part in parts if part.name == name)


def drops_in_training(config: TransformerConfig) -> bool:
    return bool(config.dropout or config.attention_dropout)


@asked
def training_pass(model: "Model", trace: Trace, seed: int) -> Effect:
    """One pass of a copy of the model in training mode, with the dropout of its config at all places: the
    last state of its last stack.

    Raises ValueError for a pass that is not our own, without dropout, or of a model that is too large.
    """
    import torch  # takes seconds to import: pages are drawn first

    from model.nn.transformer import Transformer
    from model.system.randomness import seeded

    if not isinstance(model.module, Transformer) or not drops_in_training(model.config):
        raise ValueError(f"{model.name} has no dropout of its own to run here.")
    size = model.parameter_count
    if size > LARGEST:
        raise ValueError(f"{model.name} is too large to be copied: {size:,} parameters.")
    module = copy.deepcopy(model.module).train()
    recorder = Recorder(trace.intervention, "attention")
    fed = map(model.ids, filter(None, (trace.tokens, trace.target_tokens)))
    with seeded(seed, model.device), recording(recorder), torch.inference_mode():
        module(*fed)
    stack, states = list(trace.residual.items())[-1]
    moved = numbers_of(recorder.streams[stack][-1][0])
    return Effect(read_only(moved - states[-1]), states[-1])


def _mapped(change: Wide, weight: "Tensor") -> Array:
    """A change (token, width in) through a linear map; its bias is no part of a difference."""
    return read_only(change @ numbers_of(weight).T.astype(np.float64))
