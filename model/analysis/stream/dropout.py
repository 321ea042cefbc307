"""Dropout at each of its places in training, and what it changes in the residual stream.

The model itself runs in evaluation. What follows a place up to the next sum is linear, so the change is
exact.
"""

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.stream.neurons import Dropped, dropped
from model.analysis.stream.stream import Contribution, contributions, lengths
from model.nn.config import TransformerConfig
from model.nn.places import Place
from model.nn.recorder import Recorder, recording
from model.system.elsewhere import asked
from model.trace.arrays import Array, Wide, read_only
from model.trace.collect import numbers_of
from model.trace.records import Attention
from model.trace.trace import Trace
from model.trace.unproven import NotShownError

if TYPE_CHECKING:
    from torch import Tensor

    from model.run.model import Model

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
    """Dropout on the hidden values of a feed-forward layer, (token, d_mlp)."""
    change = _mapped(found.values - hidden, model.module.w_out(part.name).weight)
    return Effect(change, read_only(part.before + part.added))


@asked
def of_weights(
    model: "Model", attention: Attention, part: Contribution, rate: float, seed: int
) -> Effect:
    """Dropout on the weights of all heads of a sub-layer, as `head_dropped` draws it for each."""
    context = [
        (head not in attention.ablated)
        * (head_dropped(attention, head, rate, seed).values - attention.weights(head))
        @ attention.value[head].astype(np.float64)
        for head in range(attention.heads)
    ]
    change = _mapped(np.concatenate(context, -1), model.layer(part.name).output.weight)
    return Effect(change, read_only(part.before + part.added))


def head_dropped(attention: Attention, head: int, rate: float, seed: int) -> Dropped:
    """The weights of one head after dropout; each head has a draw of its own."""
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
    parts = contributions(trace, stack, model.config.norm_place)
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
