"""Passes over given texts, with hooks at the points where a pass hands its numbers on, and their gradients:
all that leaves parts out of a run, puts others in, or asks what they do runs here.

Axes: R rows of a batch, T tokens, C d_model, V vocabulary.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from model.nn.intervention import UNCHANGED, Intervention, PassChange, intervention_of
from model.nn.patches import HookPoint, Hooks
from model.nn.places import Place
from model.nn.recorder import Level, Recorder, recording
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

MOST_ROWS = 24  # of a batch, so that progress shows often
MOST_TOKENS = 1024  # of a batch: other visitors wait for its end
MOST_LOGITS = 2**24  # of a batch: 64 MB


class ForwardPass(NamedTuple):
    """ended: (R, T, V) logits; (R, T, C) last states of an encoder, and of a pass whose logits are deferred.
    recorder: what the pass left behind."""

    ended: Tensor
    recorder: Recorder


def forward(
    model: "Model",
    texts: Sequence[Tensor],
    *hooks: Hooks,
    rows: int | None = None,
    intervention: PassChange = UNCHANGED,
    level: Level = "nothing",
    explicit: bool = False,
    deferred: bool = False,
    padding: Tensor | None = None,
) -> ForwardPass:
    """One pass.

    Args:
        texts: ids of each stack's text, (R, T); (1, T) with `rows`.
        hooks: each is called after those before it.
        rows: how many rows, of the same texts; the hooks alone set them apart. Before the first layer of a
            hook all rows of a decoder are alike, and are computed once. None: the texts have all rows.
        intervention: holds in all rows.
        level, explicit: as in `Recorder`.
        deferred: ends with the last states, where the model has an output matrix of its own.
        padding: (R, T), False = padding; None: there is none.
    """
    texts, hooks = _in_rows(model, texts, hooks, rows)
    held = intervention_of(intervention)
    recorder = Recorder(held, level, explicit, model.config.source, deferred, hooks=hooks)
    fed = {} if padding is None else {"padding": padding}
    with recording(recorder), torch.inference_mode():
        return ForwardPass(model.module(*texts, **fed), recorder)


def gradients(
    model: "Model",
    texts: Sequence[Tensor],
    points: Collection[HookPoint],
    of: Callable[[Tensor], Tensor],
    *hooks: Hooks,
    rows: int | None = None,
    intervention: Intervention = UNCHANGED,
    deferred: bool = False,
) -> dict[HookPoint, tuple[Tensor, Tensor]]:
    """What passes each of some points, and the gradient for it, of the same shape. Points that the pass does
    not reach are left out.

    Args:
        of: a number of what the pass ends with, whose gradients these are.
        texts, hooks, rows, intervention, deferred: as in `forward`.
    """
    passing: dict[HookPoint, tuple[Tensor, Tensor]] = {}

    def adding(point: HookPoint) -> Callable[[Tensor], Tensor]:
        def hook(x: Tensor) -> Tensor:
            passing[point] = x.detach(), torch.zeros_like(x, requires_grad=True)
            return x + passing[point][1]

        return hook

    every = (*hooks, {point: adding(point) for point in points})
    texts, every = _in_rows(model, texts, every, rows)
    recorder = Recorder(intervention, source=model.config.source, deferred=deferred, hooks=every)
    with torch.inference_mode(False), torch.enable_grad(), recording(recorder):
        number = of(model.module(*texts))
        found = torch.autograd.grad(number, [zeros for _, zeros in passing.values()])
    return {
        point: (x, gradient)
        for (point, (x, _)), gradient in zip(passing.items(), found, strict=True)
    }


def _in_rows(
    model: "Model", texts: Sequence[Tensor], hooks: tuple[Hooks, ...], rows: int | None
) -> tuple[Sequence[Tensor], tuple[Hooks, ...]]:
    """The same texts and hooks, for so many rows."""
    if rows is None:
        return texts, hooks
    layers = [layer_of(name) for each in hooks for _, name in each]
    if not layers or not rows_grow(model):
        return [text.expand(rows, -1) for text in texts], hooks
    first: HookPoint = ("stream", Place("decoder", min(layers), "self").name)
    return texts, ({first: lambda x: x.expand(rows, *x.shape[1:])}, *hooks)


def rows_grow(model: "Model") -> bool:
    """Whether one row can become many before a layer."""
    return model.config.shape == "decoder" and model.module.rows_may_grow


def layer_of(name: str) -> int:
    """The number of a sub-layer's layer."""
    return Place.named(name).layer or 0


def ids_of(model: "Model", trace: Trace) -> list[Tensor]:
    """(1, T): the ids of each text of a trace."""
    return [model.ids(text) for text in (trace.tokens, trace.target_tokens) if text]


def rows_at_once(trace: Trace, logits: int) -> int:
    """How many passes over a trace's tokens run in one batch, so that its arrays stay small. logits: those
    that each token leaves."""
    return rows_of_length(max(len(trace.tokens), len(trace.target_tokens)), logits)


def rows_of_length(length: int, logits: int) -> int:
    """The same for texts of so many tokens."""
    return max(min(MOST_ROWS, MOST_TOKENS // length, MOST_LOGITS // max(length * logits, 1)), 1)
