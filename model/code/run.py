"""Runs a listing, and compares what it gives with what the model gave."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from model.trace.arrays import Array
from model.trace.records import Token
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


def run_listing(text: str, model: "Model", trace: Trace) -> Array:
    """What the listing of a model gives for the tokens of a trace: logits, or an encoder's vectors.

    text: a listing, which `listing` has written; nothing else may be run."""
    names: dict[str, Any] = {}
    exec(compile(text, "<listing>", "exec"), names)
    ids = [torch.tensor([token.id for token in tokens]) for tokens in _read(trace)]
    weights: Mapping[str, Tensor] = {
        name: weight.cpu() for name, weight in model.module.named_weights().items()
    }
    with torch.inference_mode():
        result: Array = names["forward"](ids[0], weights, *ids[1:]).numpy()
    return result


def last_row(trace: Trace) -> Array:
    """What the model itself gave at the last token: logits, or an encoder's vector."""
    if trace.prediction is None:
        return trace.residual["encoder"][-1][-1]
    return trace.prediction.after(-1)


def largest_difference(given: Array, trace: Trace) -> float:
    """How far what a listing gave at the last token is from the model's own numbers, at most, relative to the
    largest of them."""
    own = last_row(trace)
    return float(abs(given[-1] - own).max() / max(float(abs(own).max()), 1e-6))


def _read(trace: Trace) -> list[tuple[Token, ...]]:
    return [tokens for tokens in (trace.tokens, trace.target_tokens) if tokens]
