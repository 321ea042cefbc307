"""The worked examples: inputs, steps, results, and what the notes print (`DOCUMENTS`)."""

from __future__ import annotations

from functools import cache

from model.worked import (
    activation_curves,
    attention_by_hand,
    batch_norm,
    contextual,
    cost,
    decoder_slips,
    encoder_decoder,
    errata,
    feed_forward,
    fill_values,
    gradients,
    heads,
    ladder,
    masked_attention,
    masks,
    multi_head,
    norm_places,
    norms,
    parameters,
    positions,
    prediction,
    scaling,
    shapes,
    softmax,
    tokens,
    weighted_sum,
    word_order,
)
from model.worked.example import Example, Input, Step
from model.worked.slip import Slip
from model.worked.source import DOCUMENTS, Document, Source

__all__ = [
    "DOCUMENTS",
    "Document",
    "Example",
    "Input",
    "Slip",
    "Source",
    "Step",
    "examples",
    "slips",
]

_TOPICS = (
    attention_by_hand,
    scaling,
    gradients,
    softmax,
    weighted_sum,
    masks,
    masked_attention,
    fill_values,
    decoder_slips,
    ladder,
    multi_head,
    heads,
    shapes,
    cost,
    positions,
    word_order,
    norms,
    norm_places,
    batch_norm,
    activation_curves,
    feed_forward,
    tokens,
    encoder_decoder,
    parameters,
    prediction,
    contextual,
)


@cache
def examples() -> tuple[Example, ...]:
    """Every worked example, section by section."""
    found = [
        item for topic in _TOPICS for item in vars(topic).values() if isinstance(item, Example)
    ]
    return tuple(sorted(found, key=lambda example: int(example.section.removeprefix("§"))))


@cache
def slips() -> tuple[Slip, ...]:
    """Every slip found in the notes, in figures, words and code, section by section."""
    return errata.slips(examples())
