"""A bug planted in the arithmetic must show in the examples: nothing in them is typed."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from model.arithmetic import activations, attention, learning, normalization, positions
from model.worked import examples

SOFTMAX = attention.softmax
VARIANCE = normalization.variance
BUGS: list[tuple[ModuleType, str, Callable[..., object], set[str]]] = [
    (
        attention,
        "softmax",
        lambda scores, axis=-1: SOFTMAX(scores, axis) * 1.01,
        {
            "the-cat-sat", "one-hot-picture", "two-keys-scaled", "softmax-of-three", "fill-values",
            "four-by-four-masked", "ladder-multi-head", "four-classes-agree", "lion-kills-tiger",
            "decoder-layer", "most-probable-word", "same-word-two-sentences",
        },
    ),
    (
        normalization,
        "variance",
        lambda values, axis=-1, *, unbiased=False: VARIANCE(values, axis, unbiased=True),
        {
            "layer-norm-by-hand", "biased-and-unbiased", "where-the-norm-stands", "houses",
            "encoder-layer", "decoder-layer",
        },
    ),
    (
        attention,
        "causal_mask",
        lambda length: np.tril(np.ones((length, length)), 1),
        {"look-ahead-mask", "combined-mask", "four-by-four-masked", "two-routes-to-causal",
         "ladder-causal-dropout", "all-positions-at-once"},
    ),
    (
        positions,
        "exponents",
        lambda width: np.arange(width) / width,
        {"sinusoidal-table", "embedding-plus-position", "lion-kills-tiger"},
    ),
    (activations, "normal_share", lambda points: 0.5 + 0 * points, {"gelu", "relu-and-gelu"}),
    (
        learning,
        "one_hot",
        lambda ids, size: np.roll(np.eye(size)[np.asarray(ids, dtype=np.int64)], 1, axis=-1),
        {"look-up-is-one-hot", "most-probable-word"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "name", "bug", "touched"),
    BUGS,
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_planted_bug_shows(monkeypatch, module, name, bug, touched) -> None:
    given = {example.name: example for example in examples()}
    monkeypatch.setattr(module, name, bug)
    for example in touched:
        steps = zip(given[example].steps, given[example].with_inputs().steps, strict=True)
        assert any(not np.allclose(good.result, bad.result) for good, bad in steps), example


def test_a_planted_bug_turns_the_verdict(monkeypatch) -> None:
    given = next(example for example in examples() if example.name == "two-keys-scaled")
    assert given.steps[3].agrees is True
    monkeypatch.setattr(attention, "softmax", lambda scores, axis=-1: SOFTMAX(scores * 2, axis))
    assert given.with_inputs().steps[3].agrees is False
