"""Checks that a listing fits its model, without running it: scale, masks, and the weights it reads."""

import math
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.attribution.head_maps import read_by
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from torch import Tensor

    from model.run.model import Model


def largest_difference(model: "Model", trace: Trace) -> float:
    """How far each layer's values and the last token's logits, recomputed with the weights as the listing
    reads them, are from the model's own, at most, relative to the largest number.

    Raises ValueError, with a sentence, for attention that scales or masks in another way than a listing.
    """
    weights = model.module.named_weights()
    found = []
    for attention in trace.attention:
        _check_steps(attention)
        kind = "cross" if attention.kind == "cross" else "self"
        name = f"{attention.stack}.blocks.{attention.layer}.{kind}_attention.value"
        own = attention.vectors[2]  # (key head, token, d_v)
        made = _mapped(read_by(model, trace, attention, "key"), weights, name)
        found.append(_gap(made, np.moveaxis(own, 0, 1).reshape(own.shape[1], -1)))
    if trace.prediction is not None:
        found.append(_gap(_logits(trace, weights), trace.prediction.after(-1)))
    return max(found)


def _check_steps(attention: Attention) -> None:
    expected = 1 / math.sqrt(attention.query.shape[-1])
    if not math.isclose(attention.scale, expected, rel_tol=1e-5):
        raise ValueError("it does not divide its scores by √d_k")
    mask = attention.mask
    if attention.look_ahead or (mask is None and attention.kind != "causal"):
        return
    refusal = "it masks its scores in a way that this app cannot write as code"
    if mask is None:
        raise ValueError(refusal)
    everywhere = np.ones(mask.shape[-2:], dtype=bool)
    usual = np.tril(everywhere) if attention.kind == "causal" else everywhere
    if not (mask == usual).all():
        raise ValueError(refusal)


def _logits(trace: Trace, weights: "dict[str, Tensor]") -> Array:
    """The logits of the last token, from its last state."""
    state = trace.residual["decoder"][-1][-1]
    for norm in trace.norms:
        if norm.name == "decoder.final.norm":
            state = norm.output[-1]
    tables = ("output", "embedding.tokens", "decoder.embedding.tokens")
    table = next(name for name in tables if f"{name}.weight" in weights)
    return _mapped(state, weights, table, "output.bias")


def _mapped(read: Array, weights: "dict[str, Tensor]", name: str, bias: str = "") -> Array:
    """x @ W.T + b, with the weights of this name. bias: its name, where it is another one."""
    made: Array = read @ weights[f"{name}.weight"].cpu().numpy().T
    shift = weights.get(bias or f"{name}.bias")
    return made if shift is None else made + shift.cpu().numpy()


def _gap(made: Array, own: Array) -> float:
    return float(np.abs(made - own).max()) / max(float(np.abs(own).max()), 1e-6)
