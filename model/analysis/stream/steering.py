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

from model.analysis.heads.contributions import texts_in_rows
from model.analysis.stream.stream import sub_layers
from model.nn.patches import SiteKind, Through
from model.nn.places import Place
from model.nn.recorder import Recorder, recording
from model.system.border import at_border, check_fields
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


@dataclass(frozen=True, eq=False)
class Steering:
    """A multiple of a direction, added to the stream that a layer reads, at every token.

    `trace_all` and `measure` take it where they take an intervention.

    >>> from model.analysis.stream.steering import Steering
    >>> from model.many import trace_all
    >>> toward = trace.residual["decoder"][2][1]  # (C,): what the stream holds at a token
    >>> steering = Steering(toward, "decoder.1.self", multiple=2.0)
    >>> steering, callable(steering.through(model.device))
    (<Steering before decoder.1.self: 2 × 256 numbers>, True)
    >>> (steered,) = trace_all(model, [trace.text], intervention=steering)
    >>> bool((steered.logits != trace.logits).any())
    True
    """

    toward: Array  # (C,), as `direction` gives it
    place: str | int  # the layer's first attention sub-layer, or the number of the layer
    multiple: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"<Steering before {self.place}: {self.multiple:g} × {len(self.toward)} numbers>"

    @at_border
    def through(self, device: torch.device) -> Through:
        """What adds it while a pass runs."""
        added = torch.tensor(np.asarray(self.toward), device=device) * self.multiple

        def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
            return x + added.to(x.dtype) if (kind, name) == ("stream", self.place) else x

        return through


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
    texts = texts_in_rows(model, trace, 1)
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
    (text,) = texts_in_rows(model, trace, 1)
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
    adding = Steering(toward, place, multiple).through(model.device)
    recorder = Recorder(trace.intervention, source=model.config.source, through=adding)
    with recording(recorder), torch.inference_mode():
        logits: Tensor = model.module(*texts)
    return logits.reshape(-1, logits.shape[-1]).float().cpu()


def _state_before(trace: Trace, place: str) -> Array:
    """(T, C): what a layer reads."""
    stack = Place.named(place).stack
    names = sub_layers(trace, stack) if stack in trace.residual else ()
    if place not in names:
        raise ValueError(f"{trace.model} has no layer that begins with {place!r}.")
    return trace.residual[stack][names.index(place)]
