"""Every field of an Intervention changes what it should, and nothing else."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from model import Attention, Intervention, Model, Trace
from tests.cases import cases
from tests.model.tiny import SENTENCE, TINY, loaded, of_shape, run, sentence

NEAR = 2e-5
SET = frozenset
INTERVENTIONS: dict[str, dict[str, Any]] = {
    "unscaled": {"scale": 1.0},
    "scale-zero": {"scale": 0.0},
    "scale-negative": {"scale": -0.5},
    "mask-none": {"mask": "none"},
    "mask-causal": {"mask": "causal"},
    "hidden": {"hidden": SET({1, 3})},
    "hidden-first": {"hidden": SET({0})},
    "blocked": {"blocked": SET({(2, 0), (2, 1), (4, 4), (0, 3)})},
    "fill-1e9": {"fill": -1e9, "hidden": SET({2})},
    "fill-1e20": {"fill": -1e20, "hidden": SET({2})},
    "fill-zero": {"fill": 0.0, "hidden": SET({2})},
    "dropout": {"dropout": 0.4, "seed": 7},
    "everything": {"scale": 0.9, "mask": "causal", "hidden": SET({1}), "blocked": SET({(3, 2)}),
        "fill": -1e9, "dropout": 0.2},
}  # fmt: skip
ON_TINY = pytest.mark.models(TINY)


def expected_mask(attention: Attention, intervention: Intervention, source: str) -> np.ndarray:
    """(query, key): who may look, written down from what the fields are said to mean."""
    queries, keys = attention.query.shape[1], attention.key.shape[1]
    future = np.arange(keys)[None] > np.arange(queries)[:, None]
    causal = attention.kind == "causal" and intervention.mask != "none"
    joins = attention.kind == "cross"
    causal |= intervention.mask == "causal" and (not joins or intervention.only is not None)
    look = ~future if causal else np.ones_like(future)
    if joins or attention.stack == source:
        look[:, list(intervention.hidden)] = False
    for query, key in intervention.blocked:
        if query < queries and key < keys:
            look[query, key] = False
    return look


def assert_ran_as(attention: Attention, intervention: Intervention, source: str) -> None:
    """The recorded output is that of the formula with exactly these changes."""
    look = expected_mask(attention, intervention, source)
    scale = (
        1 / math.sqrt(attention.query.shape[-1])
        if intervention.scale is None
        else intervention.scale
    )
    assert attention.scale == pytest.approx(scale)
    np.testing.assert_array_equal(
        np.ones_like(look) if attention.mask is None else attention.mask, look
    )
    for head in range(attention.heads):
        scores = (attention.query[head] @ attention.key[head].T).astype(np.float64) * scale
        scores = np.where(look, scores, intervention.fill)
        powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
        weights = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
        np.testing.assert_allclose(attention.weights(head), weights, atol=NEAR)
        dropped = attention.dropped(head)
        if not intervention.dropout:
            np.testing.assert_array_equal(dropped, attention.weights(head))
        np.testing.assert_allclose(
            attention.output[head], dropped @ attention.value[head], atol=NEAR
        )


def assert_unchanged(before: Attention, after: Attention) -> None:
    for name in ("query", "key", "value", "output"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name), err_msg=name)


@ON_TINY
@cases("intervention, explicit", product(INTERVENTIONS, [False, True]))
def test_an_intervention_of_all_sublayers_gives_what_its_formula_gives(
    intervention, explicit, model: Model
) -> None:
    only = SET(model.attention_names) if "blocked" in INTERVENTIONS[intervention] else None
    wanted = Intervention(**INTERVENTIONS[intervention], only=only)
    trace = run(model, wanted, explicit=explicit)
    for attention in trace.attention:
        assert_ran_as(attention, wanted, trace.source)
    assert trace.intervention == wanted
    assert trace.check() < NEAR


@dataclass(frozen=True)
class Effect:
    """Which sub-layers an intervention must be seen in."""

    self: bool
    causal: bool
    cross: bool


EFFECTS = {
    "unscaled": Effect(True, True, True),
    "scale-zero": Effect(True, True, True),
    "scale-negative": Effect(True, True, True),
    "mask-none": Effect(False, True, False),
    "mask-causal": Effect(True, False, True),
    "hidden": Effect(True, True, True),
    "hidden-first": Effect(True, True, True),
    "blocked": Effect(True, True, True),
    "fill-1e9": Effect(True, True, True),
    "fill-1e20": Effect(True, True, True),
    "fill-zero": Effect(True, True, True),
    "dropout": Effect(True, True, True),
    "everything": Effect(True, True, True),
}


@ON_TINY
def test_an_intervention_of_one_sublayer_shows_there_and_leaves_the_others_as_they_were(
    model: Model, subtests: pytest.Subtests
) -> None:
    before = run(model)
    for intervention in INTERVENTIONS:
        with subtests.test(intervention=intervention):
            for number, name in enumerate(model.attention_names):
                wanted = Intervention(**INTERVENTIONS[intervention], only=SET({name}))
                after = run(model, wanted)
                for earlier in range(number):
                    assert_unchanged(before.attention[earlier], after.attention[earlier])
                own, changed = before.attention[number], after.attention[number]
                for vectors in ("query", "key", "value"):
                    np.testing.assert_array_equal(getattr(own, vectors), getattr(changed, vectors))
                for other in after.attention:
                    assert_ran_as(
                        other, wanted if other.name == name else Intervention(), after.source
                    )
                same = np.allclose(own.output, changed.output, atol=NEAR)
                assert same is not shows(model, intervention, own.kind)


def shows(model: Model, intervention: str, kind: str) -> bool:
    """Whether it has something to change in a sub-layer of this kind."""
    hides_source = "hidden" in INTERVENTIONS[intervention] and len(model.stacks()) == 2
    if kind == "causal" and hides_source:  # the target holds no source position
        return intervention in ("fill-zero", "everything")
    return bool(getattr(EFFECTS[intervention], kind))


def assert_same_trace(before: Trace, after: Trace) -> None:
    """Bit for bit."""
    for ours, theirs in zip(before.attention, after.attention, strict=True):
        assert_unchanged(ours, theirs)
    for stack, states in before.residual.items():
        for ours, theirs in zip(states, after.residual[stack], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    if before.logits is not None:
        np.testing.assert_array_equal(before.logits, after.logits)


def test_changed_runs_leave_the_baseline_bit_for_bit(model: Model) -> None:
    before = run(model)
    name = model.attention_names[0]
    run(model, Intervention(scale=1.0, mask="causal", hidden=SET({1}), dropout=0.5))
    run(model, Intervention(positions=False, ablated=SET({(name, 0)}), fill=0.0), explicit=True)
    with pytest.raises(ValueError, match="no attention sub-layer"):
        run(model, Intervention(only=SET({"decoder.99.self"})))
    assert_same_trace(before, run(model))


def test_the_models_own_factor_given_by_hand_changes_nothing(model: Model) -> None:
    own = run(model).attention[0].scale
    assert_same_trace(run(model), run(model, Intervention(scale=own)))


def test_dropout_is_seeded_and_shown_after_the_weights(model: Model) -> None:
    intervention = Intervention(dropout=0.5, seed=3)
    first, again = run(model, intervention), run(model, intervention)
    assert_same_trace(first, again)
    other = run(model, Intervention(dropout=0.5, seed=4))
    assert not np.array_equal(first.attention[0].output, other.attention[0].output)
    zeros = []
    for attention in first.attention:
        for head in range(attention.heads):
            weights, dropped = attention.weights(head), attention.dropped(head)
            np.testing.assert_allclose(weights.sum(-1), 1, atol=NEAR)
            off = dropped == 0
            np.testing.assert_allclose(dropped[~off], weights[~off] * 2, rtol=1e-5)
            zeros.append(off[weights > 0])
    assert 0.35 < np.concatenate(zeros).mean() < 0.65
    assert first.check() < NEAR


def test_dropout_falls_differently_in_each_sublayer_and_head() -> None:
    trace = run(loaded("gpt"), Intervention(dropout=0.5))
    patterns = {
        (attention.dropped(head) == 0).tobytes()
        for attention in trace.attention
        for head in range(attention.heads)
    }
    assert len(patterns) == 6


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_generation_runs_with_the_intervention(model: Model) -> None:
    text = sentence(model)
    target_so_far = "" if model.config.shape == "encoder-decoder" else None
    for intervention in (
        Intervention(scale=-1.0, positions=False),
        Intervention(dropout=0.6),
        Intervention(ablated=SET((model.attention_names[0], head) for head in range(2))),
    ):
        predicted = model.trace(text, target_so_far, intervention).logits
        written = model.generate(text, limit=1, intervention=intervention)
        assert written[0].id == predicted[-1].argmax()


def test_generation_differs_under_a_change_and_not_after_it() -> None:
    model = loaded("llama")
    plain = model.generate(SENTENCE, limit=6)
    assert model.generate(SENTENCE, limit=6, intervention=Intervention(scale=-5.0)) != plain
    assert model.generate(SENTENCE, limit=6) == plain
