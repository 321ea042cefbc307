"""Checks that a listing fits its model, without running it: scale, masks, and the weights it reads."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.head_maps import CLOSE, Rotation, read_by
from model.code.listing import logits_table
from model.nn.config import Stack, TransformerConfig
from model.nn.places import Place
from model.nn.stages import STAGES
from model.system.remote import asked
from model.trace.arrays import Array
from model.trace.collect import numbers_of
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

NamedWeights = Mapping[str, Tensor]  # by name
VECTORS = ("query", "key", "value")


@asked
def checked_difference(model: "Model", trace: Trace, weights: NamedWeights | None = None) -> float:
    """`largest_difference` of a model that can be written as code. weights: its own unless given. Raises
    ValueError, with the rest of a sentence, for a model that cannot."""
    off = largest_difference(model, trace, weights or model.module.named_weights())
    if not off <= CLOSE:
        raise ValueError("its weights do not give its numbers in the way of such a listing")
    return off


def largest_difference(model: "Model", trace: Trace, weights: NamedWeights) -> float:
    """How far each layer's queries, keys and values and the last token's logits, recomputed with the weights
    as the listing reads them, are from the model's own, at most, relative to the largest number.

    Raises ValueError, with the rest of a sentence, for attention that has other stages than its
    listing.
    """
    found = []
    for attention in trace.attention:
        _check_steps(attention, model.config, weights)
        length = attention.query.shape[1]
        angles = model.module.embedding.angles(length, torch.device("cpu"))
        turns = None if angles is None else angles.numpy()
        found.append(vectors_gap(model, trace, attention, weights, turns))
    if trace.prediction is not None:
        found.append(_gap(_logits(trace, weights), trace.prediction.after(-1)))
    return max(found)


def _check_steps(attention: Attention, config: TransformerConfig, weights: NamedWeights) -> None:
    # Raises ValueError, with the rest of a sentence, for stages that a listing does not write.
    for stage in STAGES:
        weight = weights.get(f"{within_weights(attention)}{stage.field}")
        learned = None if weight is None else _array(weight)
        theirs = stage.listed(config, learned, attention.sizes)
        ours = stage.of(attention) if stage.is_in(attention) else stage.nothing
        if not np.allclose(ours, theirs, atol=1e-5):
            raise ValueError(f"it {stage.refusal} in a way that this app cannot write as code")
    expected = 1 / math.sqrt(attention.query.shape[-1])
    if not math.isclose(attention.scale, expected, rel_tol=1e-5):
        raise ValueError("it does not divide its scores by √d_k")
    mask, window = attention.mask, config.window_of(attention.layer)
    if not window and (attention.look_ahead or (mask is None and attention.kind != "causal")):
        return
    refusal = "it masks its scores in a way that this app cannot write as code"
    if mask is None:
        raise ValueError(refusal)
    usual = np.ones(mask.shape[-2:], dtype=bool)
    if attention.kind == "causal":
        usual = np.tril(usual) & ~np.tril(usual, -window or -len(usual))
    if not (mask == usual).all():
        raise ValueError(refusal)


def within_weights(attention: Attention) -> str:
    """How the names of a sub-layer's weights begin."""
    kind = "cross" if attention.kind == "cross" else "self"
    return f"{attention.stack}.blocks.{attention.layer}.{kind}_attention."


def vectors_gap(
    model: "Model",
    trace: Trace,
    attention: Attention,
    weights: NamedWeights,
    angles: Array | None,
    first: int | None = None,
) -> float:
    """How far a sub-layer's queries, keys and values are from the recorded ones: mapped, split into heads,
    normed, turned by the angles of rotary positions. Relative to the largest number.

    Args:
        weights: all that the listing reads, by its names.
        angles: (token, pair), in radians; None where no one table holds for all layers.
        first: so many tokens from the start; None: all.

    Raises ValueError where the layer turns and there are no angles, and for norms that have no code.
    """
    found = []
    for name, own in zip(VECTORS, attention.vectors, strict=True):
        own = own[:, :first]
        _, made = projected(model, trace, attention, name, weights, angles, first)
        found.append(_gap(made, own))
    return max(found)


def projected(
    model: "Model",
    trace: Trace,
    attention: Attention,
    name: str,
    weights: NamedWeights,
    angles: Array | None,
    first: int | None = None,
) -> tuple[Array, Array]:
    """One of VECTORS of a sub-layer, made of the weights: (token, width), as the map gives it, and
    (head, token, d_k), split, normed and turned.

    Args:
        name: "query", "key" or "value".
        weights, angles, first: as in `vectors_gap`, whose errors it raises.
    """
    read = read_by(model, trace, attention, "query" if name == "query" else "key")[:first]
    within = f"{within_weights(attention)}{name}"
    mapped = _mapped(read, weights, within)
    heads = len(attention.vectors[VECTORS.index(name)])
    made = mapped.reshape(len(mapped), heads, -1).swapaxes(0, 1)
    if name != "value":
        made = _normed(made, weights, f"{within}_norm", model.config)
        made = _turned(model, angles, made) if attention.projection.turned else made
    return mapped, made


def _normed(vectors: Array, weights: NamedWeights, name: str, config: TransformerConfig) -> Array:
    """The vectors of each head after the norm of this name, where queries and keys are normed."""
    if not config.projection.normed:
        return vectors
    letters = ("gamma", "beta") if config.shifts else ("gamma",)
    width = vectors.shape[-1:]
    given = [weights.get(f"{name}.{letter}") for letter in letters]
    parts = [part.detach().cpu() for part in given if part is not None and part.shape == width]
    if len(parts) < len(letters):
        raise ValueError("its queries and keys have norms that this app cannot write as code")
    gamma, beta = (*parts, None)[:2]
    return _array(config.norm_law.apply(torch.from_numpy(vectors), gamma, beta, config.epsilon)[0])


def _turned(model: "Model", angles: Array | None, vectors: Array) -> Array:
    """(head, token, d_k): vectors turned by the angles of their positions."""
    if angles is None:
        raise ValueError("its layers turn queries and keys by angles of several kinds")
    turn = Rotation(angles.astype(np.float64), model.config.rotary_pairs)
    return turn.of(vectors.astype(np.float64), np.arange(vectors.shape[1])).astype(np.float32)


def _logits(trace: Trace, weights: NamedWeights) -> Array:
    """The logits of the last token, from its last state."""
    state = last_states(trace, "decoder")[-1]
    return _mapped(state, weights, logits_table(weights), "output.bias")


def last_states(trace: Trace, stack: Stack) -> Array:
    """(token, d_model): what a stack hands out, after its final norm if it has one."""
    name = Place(stack, None, "final").norm
    found = (norm.output for norm in trace.norms if norm.name == name)
    return next(found, trace.residual[stack][-1])


def _mapped(read: Array, weights: NamedWeights, name: str, bias: str = "") -> Array:
    """x @ W.T + b, with the weights of this name. bias: its name, where it is another one."""
    made: Array = read @ _array(weights[f"{name}.weight"]).T
    shift = weights.get(bias or f"{name}.bias")
    return made if shift is None else made + _array(shift)


def _array(weight: Tensor) -> Array:
    array: Array = numbers_of(weight)
    return array


def _gap(made: Array, own: Array) -> float:
    return float(np.abs(made - own).max()) / max(float(np.abs(own).max()), 1e-6)
