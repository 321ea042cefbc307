"""The sum that the residual stream starts from, and what each sub-layer and norm does to it. Axes: token,
d_model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from model.nn.config import Stack
from model.nn.places import Place
from model.system.border import at_border
from model.system.remote import asked
from model.trace.arrays import Array, read_only
from model.trace.lazy import some_of
from model.trace.records import NormRecord
from model.trace.trace import Trace
from model.trace.unproven import proven

if TYPE_CHECKING:
    from torch import nn

    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class Sum:
    """What is added up for each token before the first layer, and what the pass recorded of it."""

    parts: dict[str, Array]  # "tokens", "positions", "segments": (token, d_model) each
    recorded: Array  # (token, d_model)
    into: str  # name of the norm that reads the sum; "" where the sum is the first state

    @property
    def total(self) -> Array:
        """(token, d_model): the sum, recomputed."""
        return read_only(np.stack(list(self.parts.values())).sum(axis=0))

    def check(self) -> float:
        """Largest |sum - recorded|."""
        return float(np.abs(self.total - self.recorded).max())


def summed(trace: Trace) -> Sum:
    """The sum that the stack which reads the text starts from."""
    parts = dict(trace.summands[trace.source])
    for norm in trace.norms:
        if norm.name == Place(trace.source, None, "embedding").norm:
            return Sum(parts, norm.input, norm.name)
    return Sum(parts, trace.residual[trace.source][0], "")


@dataclass(frozen=True, eq=False)
class Contribution:
    """What one sub-layer added to the stream, and the state before."""

    name: str  # decoder.0.self, decoder.0.feed_forward
    states: Sequence[Array]  # before and after it, (token, d_model) each
    reads: NormRecord | None = None  # what stands on the sum, and reads it
    norm: NormRecord | None = None  # through which it is added (Gemma 2, OLMo 2)

    def __getstate__(self) -> dict[str, object]:
        """It travels with its states read."""
        return vars(self) | {"states": tuple(self.states)}

    @property
    def before(self) -> Array:
        """(token, d_model): the state that it is added to."""
        return self.states[0]

    @cached_property
    def added(self) -> Array:
        """(token, d_model): what it added."""
        total = self.states[1] if self.reads is None else self.reads.input
        return read_only(total - self.before)

    @property
    def written(self) -> Array:
        """(token, d_model): what the sub-layer's last map gave; a norm may stand between it and `added`."""
        return self.added if self.norm is None else self.norm.input


def contributions(model: "Model", trace: Trace, stack: Stack) -> tuple[Contribution, ...]:
    """Every sub-layer's contribution to a stack's stream, in order of execution.

    Pre-norm: the next state minus the state before. Post-norm: the input of the norm after the sum,
    minus the state before. Raises ValueError where sub-layers and states do not fit.
    """
    names, states = sub_layers(trace, stack), trace.residual[stack]
    norms = {norm.name: norm for norm in proven(trace.norms)}
    return tuple(
        Contribution(
            name,
            some_of(states, number, number + 2),
            norms[Place.named(name).norm] if model.config.norms_sum else None,
            norms.get(Place.named(name).after),
        )
        for number, name in enumerate(names)
    )


def sub_layers(trace: Trace, stack: Stack) -> tuple[str, ...]:
    """The sub-layers that write to a stack's stream, in order of execution. Raises ValueError where they are
    not as many as its states."""
    attentions: dict[int, list[str]] = {}
    for attention in trace.attention:
        if attention.stack == stack:
            attentions.setdefault(attention.layer, []).append(attention.name)
    count = len(trace.residual[stack]) - 1
    feeds = count - sum(map(len, attentions.values()))
    if feeds not in (0, len(attentions)):
        raise ValueError(
            f"the residual stream of its {stack} was recorded {count + 1} times in {len(attentions)} layers, "
            "which fits neither one sub-layer nor two in each"
        )
    return tuple(
        name
        for layer, names in attentions.items()
        for name in (*names, *([Place(stack, layer, "feed_forward").name] if feeds else []))
    )


def embedding_norm(trace: Trace, stack: Stack) -> NormRecord | None:
    """The norm after the embedding of a stack. Stacks may share one, which is recorded for each, in order."""
    norms = [norm for norm in trace.norms if Place.named(norm.name).kind == "embedding"]
    return norms[trace.stacks.index(stack)] if norms else None


def lengths(vectors: Array) -> Array:
    """(…, d_model) to (…): the Euclidean length of each vector."""
    return read_only(np.linalg.norm(vectors.astype(np.float64), axis=-1))


@asked
def written(model: "Model", trace: Trace, name: str) -> Array:
    """(token, d_model): what a sub-layer wrote, recomputed: the heads' outputs side by side through
    W_O, or the hidden activations through the second map. Raises ValueError for a trace without them.
    """
    if name in trace.written:  # by experts, or in a way that tells no neurons
        return trace.written[name]
    if Place.named(name).kind == "feed_forward":
        hidden = next((record.hidden for record in trace.feed_forward if record.name == name), None)
        if hidden is None:
            raise ValueError(
                f"This trace has no activations of {name}: it was not recorded in full."
            )
        return _mapped(hidden, model.module.w_out(name))
    attention = trace.find(name)
    heads = attention.output.copy()  # (head, token, d_v)
    heads[list(attention.ablated)] = 0
    return _mapped(np.concatenate(heads, axis=-1), model.layer(name).output)


class LargeNumber(NamedTuple):
    """One number of the residual stream.

    place: the attention sub-layer of the layer that reads it. ratio: how many times the median of its state
    it is, both without their signs.

    >>> from model.analysis import largest_numbers
    >>> largest = largest_numbers(trace, n=1)[0]
    >>> largest.place, largest.token, round(largest.value, 1)
    ('decoder.3.self', 0, 139.4)
    """

    place: str
    token: int
    dimension: int
    value: float
    ratio: float


@at_border
def largest_numbers(trace: Trace, n: int = 10) -> list[LargeNumber]:
    """The largest numbers of the stream, without their signs: of each token and dimension one, as the first
    layer reads it that finds it at half of its largest size or more (it may stay in all states after).

    The states are those that layers read, as `Intervention.stream` sets them. Raises ValueError where
    sub-layers and states do not fit. Source: Sun et al. 2024, "Massive Activations in Large Language Models".

    >>> from model.analysis import largest_numbers
    >>> len(largest_numbers(trace, n=3))
    3
    """
    found: list[LargeNumber] = []
    for stack in trace.residual:
        read = layer_states(trace, stack)
        names, states = list(read), np.stack(list(read.values()))  # (layer, token, d_model)
        sizes = np.abs(states)
        largest = sizes.max(axis=0)
        first = (sizes >= largest / 2).argmax(axis=0)
        for index in np.argsort(largest, axis=None)[::-1][:n]:
            token, dimension = divmod(int(index), largest.shape[1])
            layer = int(first[token, dimension])
            value = float(states[layer, token, dimension])
            median = float(np.median(sizes[layer]))
            ratio = abs(value) / median if median else np.inf
            found.append(LargeNumber(names[layer], token, dimension, value, ratio))
    return sorted(found, key=lambda one: -abs(one.value))[:n]


def layer_states(trace: Trace, stack: Stack) -> dict[str, Array]:
    """(token, d_model) by the first sub-layer of each layer: the state that it reads. Raises ValueError where
    sub-layers and states do not fit."""
    names, states = sub_layers(trace, stack), trace.residual[stack]
    layers = [Place.named(name).layer for name in names]
    return {name: states[at] for at, name in enumerate(names) if layers.index(layers[at]) == at}


@asked
def contribution_check(model: "Model", trace: Trace, given: tuple[Contribution, ...]) -> float:
    """Largest |what a sub-layer wrote - what the stream received|, before and after a norm between them."""
    gaps = [np.abs(written(model, trace, part.name) - part.written).max() for part in given]
    gaps += [np.abs(part.norm.output - part.added).max() for part in given if part.norm is not None]
    return float(max(gaps))


@asked
def norm_reads(model: "Model", trace: Trace, norm: str) -> Array:
    """(token, d_model): what a norm reads, recomputed from the stream and the sub-layers.

    After the embeddings: their sum. Pre-norm and final norm: the stream. Post-norm: the stream plus
    what the sub-layer wrote; or, where it stands before the sum, what the sub-layer wrote. Raises
    ValueError for a norm of no stack.
    """
    place = Place.named(norm)
    name, stack = place.name, place.stack
    if stack not in trace.stacks:
        raise ValueError(f"There is no stack {stack!r} in this trace.")
    if place.kind == "embedding":
        return read_only(np.asarray(sum(trace.summands[stack].values())))
    if place.kind == "final":
        return trace.residual[stack][-1]
    parts = contributions(model, trace, stack)
    at = [part.name for part in parts].index(name)
    if norm == place.after:
        return written(model, trace, name)
    if model.config.parallel and place.kind == "feed_forward":
        return parts[at - 1].before  # attention and feed-forward read the same state
    before = parts[at].before
    return before + written(model, trace, name) if model.config.norms_sum else before


def weight_and_bias(map_: "nn.Module") -> tuple[Array, Array]:
    """(out, in) and (out,): a linear map in numpy; a bias of zero where it has none."""
    from model.trace.collect import numbers_of  # torch: pages are drawn first

    weight, bias = numbers_of(map_.get_parameter("weight")), getattr(map_, "bias", None)
    return weight, np.zeros(len(weight), weight.dtype) if bias is None else numbers_of(bias)


def _mapped(vectors: Array, map_: "nn.Linear") -> Array:
    """vectors (token, width in) through a linear map."""
    weight, bias = weight_and_bias(map_)
    return read_only(vectors @ weight.T + bias)


# What a recorded norm did to each token, and what other norms would make of the same input.
# Everything here is computed in float64 from the recorded input. Axes: token, d_model.


class KernelCheck(NamedTuple):
    """Largest differences between what the kernel recorded and the same recomputed in float64."""

    mean: float
    inverse_deviation: float  # of 1/sqrt(variance + epsilon), as a share of it
    output: float | None  # None where the output was not kept


def kernel_check(norm: NormRecord) -> KernelCheck:
    """How far the kernel's own statistics and output lie from those of the recorded input."""
    mean, inverse = norm.recomputed()
    output = None
    if norm.recorded is not None:
        expected = (norm.input - mean) * inverse * norm.gamma + norm.beta
        output = float(np.abs(expected - norm.recorded).max())
    return KernelCheck(
        float(np.abs(mean[:, 0] - norm.mean).max()),
        float(np.abs(norm.inverse_deviation / inverse[:, 0] - 1).max()),
        output,
    )
