"""Steering: a multiple of the difference of two sentences' streams, added before a layer.

Sources: Turner et al. 2023, "Activation Addition"; Rimsky et al. 2024, "Steering Llama 2 via Contrastive
Activation Addition". Axes: M multiples, T tokens, C width of the model, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.stream.stream import sub_layers
from model.nn.places import Place
from model.nn.steering import Steering
from model.run.passes import forward, ids_of
from model.system.remote import asked
from model.trace.arrays import Array, Wide, read_only
from model.trace.records import Token
from model.trace.trace import Trace
from model.trace.unproven import require

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class Steered:
    """The passes of one text with each multiple of a direction added.

    multiples: (M,), as they were asked for. logits: (M, V), after the last token. loss: (M,), the mean over
    the text's own tokens, in nats; None where it has one token only.
    """

    multiples: tuple[float, ...]
    logits: Array
    loss: Wide | None

    @property
    def probabilities(self) -> Wide:
        """(M, V), in double precision."""
        return torch.tensor(self.logits, dtype=torch.float64).softmax(-1).numpy()


def direction(toward: Trace, away: Trace, place: str) -> Array:
    """(C,): what the stream holds before a layer at the last token of one run, minus that of another.

    Args:
        toward, away: runs of one model.
        place: the layer's first attention sub-layer.

    Raises ValueError for a layer that they do not have, and where both hold the same.
    """
    (one, other) = (_state_before(trace, place)[-1] for trace in (toward, away))
    difference = one - other
    if not difference.any():
        raise ValueError("Both texts leave the same stream there, so they give no direction.")
    return read_only(difference)


@asked
def steered(
    model: "Model", trace: Trace, toward: Array, place: str, multiples: Sequence[float]
) -> Steered:
    """One pass of a trace's tokens for each multiple of a direction, added to the stream that a layer
    reads, at every token. The trace's own interventions hold.

    Args:
        toward: the direction, (C,).
        place: the layer's first attention sub-layer.
        multiples: of the direction; 0 changes nothing.

    Raises ValueError for a model that predicts no token, and for a layer that it does not have.
    """
    require(model.name, "stream", model.unproven)
    if trace.prediction is None:
        raise ValueError(f"{model.name} predicts no next token, so nothing can be steered.")
    _state_before(trace, place)
    texts = ids_of(model, trace)
    rows = [_passed(model, trace, texts, toward, place, multiple) for multiple in multiples]
    following = [token.id for token in trace.tokens_of("decoder")[1:]]
    loss = [
        float(F.cross_entropy(row[: len(following)].double(), torch.tensor(following)))
        for row in rows
        if following
    ]
    logits = np.stack([row[-1].numpy() for row in rows])
    return Steered(tuple(multiples), read_only(logits), np.array(loss) if loss else None)


@asked
def continuation(
    model: "Model", trace: Trace, toward: Array, place: str, multiple: float, tokens: int = 12
) -> tuple[Token, ...]:
    """What a decoder writes after a trace's tokens, each time the likeliest token, with a multiple of a
    direction added at every token.

    Args:
        toward, place: as in `steered`.
        tokens: how many are written; fewer where the context is full.

    Raises ValueError as `steered`, and for another kind of model.
    """
    if model.config.shape != "decoder":
        raise ValueError(f"{model.name} is no decoder: it does not continue a text.")
    written: list[int] = []
    (text,) = ids_of(model, trace)
    for _ in range(min(tokens, model.config.n_ctx - len(trace.tokens))):
        following = torch.tensor([written], dtype=text.dtype, device=text.device)
        ids = torch.cat([text, following], dim=1)
        written.append(int(_passed(model, trace, [ids], toward, place, multiple)[-1].argmax()))
    return tuple(model.tokenizer.named(written))


def _passed(
    model: "Model",
    trace: Trace,
    texts: Sequence[Tensor],
    toward: Array,
    place: str,
    multiple: float,
) -> Tensor:
    """(T, V): the logits of one pass over texts (1, T), with the interventions of a trace."""
    adding = Steering(toward, place, multiple).hooks(model.device)
    logits = forward(model, texts, adding, intervention=trace.intervention).ended
    return logits.reshape(-1, logits.shape[-1]).float().cpu()


def _state_before(trace: Trace, place: str) -> Array:
    """(T, C): what a layer reads."""
    stack = Place.named(place).stack
    names = sub_layers(trace, stack) if stack in trace.residual else ()
    if place not in names:
        raise ValueError(f"{trace.model} has no layer that begins with {place!r}.")
    return trace.residual[stack][names.index(place)]
