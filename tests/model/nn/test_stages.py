"""The stages that later models put between scores and weights: cap, bias, sink, window."""

import itertools
import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from model import Attention, Intervention
from model.nn import attention
from model.nn.attention import attend
from model.nn.config import Projection
from model.nn.masks import causal_mask
from model.nn.patches import HookPoint, Hooks, Patch, cache_hooks, patch_hooks
from model.nn.places import Place
from model.nn.recorder import AttentionCall, Recorder, recording
from model.trace.collect import attention_record
from tests.cases import cases

SELF, CAUSAL = Place("encoder", 0, "self"), Place("decoder", 0, "causal")
HEADS, KEY_HEADS, LENGTH, WIDTH = 4, 2, 6, 8
BIASES = {
    "one for all heads": (LENGTH, LENGTH),
    "one a head": (1, HEADS, LENGTH, LENGTH),
    "one a key": (HEADS, 1, LENGTH),
    "one a text": (2, 1, LENGTH, LENGTH),
}


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def vectors() -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of two texts, keys and values grouped."""
    return (
        drawn(2, HEADS, LENGTH, WIDTH) * 3,
        drawn(2, KEY_HEADS, LENGTH, WIDTH),
        drawn(2, KEY_HEADS, LENGTH, WIDTH).flip(-1),
    )


def stages(*named: str) -> dict[str, Any]:
    known = {"cap": 1.5, "bias": drawn(1, HEADS, LENGTH, LENGTH), "sinks": drawn(HEADS)}
    return {name: known[name] for name in named}


def by_formula(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    cap: float | None = None,
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, weights (B, H, T, S) and what the sink takes (B, H, T), written out in float64."""
    query, key, value = query.double(), key.double(), value.double()
    key, value = key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
    scores = torch.einsum("bhtd,bhsd->bhts", query, key) / math.sqrt(WIDTH)
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    scores = scores if bias is None else scores + bias
    powers = scores.exp() if mask is None else scores.exp() * mask
    sink = torch.zeros(HEADS) if sinks is None else sinks.double().exp()
    sums = powers.sum(-1) + sink[:, None]
    weights = powers / sums.where(sums > 0, 1)[..., None]
    return weights @ value, weights, sink[:, None] / sums.where(sums > 0, 1)


def recorded(
    place: Place = SELF,
    intervention: Intervention | None = None,
    explicit: bool = False,
    **stages: Any,
) -> tuple[Tensor, Attention]:
    """The output of both texts, and the record of the first."""
    recorder = Recorder(intervention or Intervention(), "attention", explicit)
    with recording(recorder):
        output = attend(*vectors(), place, **stages)
    return output, attention_record(recorder.attention[0], (), Projection())


NAMES = [
    names for count in range(4) for names in itertools.combinations(("cap", "bias", "sinks"), count)
]


@cases("explicit, masked, names", product([False, True], ["open", "causal", "by hand"], NAMES))
def test_every_combination_of_stages_is_the_formula(explicit, masked, names) -> None:
    mask = {"open": None, "causal": causal_mask(LENGTH), "by hand": drawn(LENGTH, LENGTH) > 0}[
        masked
    ]
    output, attention = recorded(
        CAUSAL if masked == "causal" else SELF,
        explicit=explicit,
        mask=mask if masked == "by hand" else None,
        **stages(*names),
    )
    expected, weights, sink = by_formula(*vectors(), mask, **stages(*names))
    torch.testing.assert_close(output.double(), expected, atol=1e-5, rtol=1e-5)
    for head in range(HEADS):
        np.testing.assert_allclose(attention.weights(head), weights[0, head], atol=1e-5)
        np.testing.assert_allclose(attention.sink_weights(head), sink[0, head], atol=1e-5)
        np.testing.assert_allclose(attention.context(head), expected[0, head], atol=1e-5)
    assert attention.check() < 1e-5
    # A recomputation that forgets a stage does not agree.
    for name in names:
        assert replace(attention, steps={}, **{name: None}).check() > 1e-3


@cases("dropout", [0.0, 0.5])
def test_the_check_sees_one_wrong_number_in_any_step_of_an_explicit_pass(dropout) -> None:
    _, attention = recorded(
        CAUSAL, Intervention(dropout=dropout), explicit=True, **stages("cap", "bias", "sinks")
    )
    assert attention.check() < 1e-5
    for name, step in attention.steps.items():
        wrong = step.copy()
        wrong[(1, 2, 0)[: wrong.ndim]] += 0.1
        assert replace(attention, steps={**attention.steps, name: wrong}).check() > 1e-3, name


@cases("shape, place", product(BIASES.values(), [SELF, CAUSAL]))
def test_a_bias_is_what_the_kernel_adds_in_a_float_mask(shape, place) -> None:
    bias = drawn(*shape)
    query, key, value = vectors()
    added = bias.expand(2, HEADS, LENGTH, LENGTH)
    if place == CAUSAL:
        added = added.masked_fill(~causal_mask(LENGTH), -math.inf)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=added, enable_gqa=True)
    output, attention = recorded(place, bias=bias)
    torch.testing.assert_close(output, expected)
    assert attention.bias.shape == ((1, 1, 1, *shape)[-3:] if shape[0] != 2 else shape[1:])
    assert attention.look_ahead is (place == CAUSAL)
    assert attention.check() < 1e-5


def test_a_repeated_bias_is_kept_once_and_one_of_zeros_is_none() -> None:
    for kept, bias in {
        (1, 1, LENGTH): drawn(LENGTH).expand(1, HEADS, LENGTH, LENGTH),
        (HEADS, 1, LENGTH): drawn(HEADS, 1, LENGTH).expand(HEADS, LENGTH, LENGTH),
    }.items():
        _, attention = recorded(bias=bias)
        assert attention.bias.shape == kept
        assert attention.check() < 1e-5
    _, attention = recorded(bias=torch.zeros(1, HEADS, LENGTH, LENGTH))
    assert attention.bias is None


@cases("explicit", [False, True])
def test_stages_that_a_layer_has_not_equal_the_one_before(explicit) -> None:
    _, attention = recorded(CAUSAL, explicit=explicit)
    assert (attention.cap, attention.bias, attention.sinks, attention.window) == (None,) * 4
    np.testing.assert_array_equal(attention.capped(1), attention.scaled(1))
    np.testing.assert_array_equal(attention.biased(1), attention.scaled(1))
    np.testing.assert_array_equal(attention.sink_weights(1), np.zeros(LENGTH))


@cases("explicit", [False, True])
def test_a_row_with_every_key_masked_is_zero_and_all_of_it_goes_to_the_sink(explicit) -> None:
    mask = causal_mask(LENGTH)
    mask[2] = False
    for names in NAMES:
        output, attention = recorded(mask=mask, explicit=explicit, **stages(*names))
        assert (output[:, :, 2] == 0).all()
        assert (attention.weights(0)[2] == 0).all()
        assert attention.sink_weights(0)[2] == ("sinks" in names)
        assert attention.check() < 1e-5


@cases("name", ["cap", "bias", "sinks"])
def test_a_stage_switched_off_is_the_formula_without_it(name) -> None:
    own, _ = recorded(CAUSAL, **stages("cap", "bias", "sinks"))
    others = {"cap", "bias", "sinks"} - {name}
    without, _ = recorded(CAUSAL, **stages(*others))
    switched = Intervention(**{name: False})
    assert switched.changes
    off, attention = recorded(CAUSAL, switched, **stages("cap", "bias", "sinks"))
    assert torch.equal(off, without)
    assert not torch.allclose(off, own)
    assert getattr(attention, name) is None
    elsewhere = replace(switched, only=frozenset({"decoder.1.self"}))
    assert torch.equal(recorded(CAUSAL, elsewhere, **stages("cap", "bias", "sinks"))[0], own)
    plain, _ = recorded(CAUSAL)
    assert torch.equal(recorded(CAUSAL, switched)[0], plain)


@cases("explicit", [False, True])
def test_the_sink_and_the_others_share_what_a_weight_set_by_hand_leaves(explicit) -> None:
    _, before = recorded(CAUSAL, **stages("cap", "bias", "sinks"))
    cell = ("decoder.0.self", 1, 3, 2, 0.25)
    changed = Intervention(weights=frozenset({cell}))
    recorder = Recorder(changed, "attention", explicit)
    with recording(recorder):
        attend(*vectors(), CAUSAL, **stages("cap", "bias", "sinks"))
    after = attention_record(recorder.attention[0], (), Projection(), (cell[1:],))
    row, sink = before.weights(1)[3], before.sink_weights(1)[3]
    left = 0.75 / (1 - row[2])
    np.testing.assert_allclose(after.sink_weights(1)[3], sink * left, atol=1e-6)
    np.testing.assert_allclose(after.weights(1)[3, [0, 1, 3]], row[[0, 1, 3]] * left, atol=1e-6)
    assert after.weights(1)[3, 2] == np.float32(0.25)
    assert after.check() < 1e-5


@cases("explicit, names", product([False, True], NAMES))
def test_every_stage_runs_where_the_model_is(explicit, names) -> None:
    """On the `meta` device a tensor that was left on the CPU, or a value that is asked for, raises."""
    meta = torch.device("meta")
    given = {
        name: stage.to(meta) if isinstance(stage, Tensor) else stage
        for name, stage in stages(*names).items()
    }
    for changed in (Intervention(), Intervention(window=2), Intervention(hidden=frozenset({1}))):
        recorder = Recorder(changed, "attention", explicit)
        with recording(recorder):
            output = attend(*(x.to(meta) for x in vectors()), CAUSAL, **given)
        kept = [
            *vars(recorder.attention[0]).values(),
            *recorder.attention[0].steps.values(),
            output,
        ]
        assert {x.device for x in kept if isinstance(x, Tensor)} == {meta}


@cases("masked, shape, names", product([False, True], BIASES.values(), [(), ("cap",), ("sinks",)]))
def test_a_long_text_is_computed_some_queries_at_a_time(
    masked, shape, names, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = stages(*names) | {"bias": drawn(*shape)}
    given |= {"mask": drawn(LENGTH, LENGTH) > -1} if masked else {}
    whole, _ = recorded(CAUSAL, **given)
    monkeypatch.setattr("model.nn.attention.BLOCK", 2 * (2 * HEADS * LENGTH))  # two queries
    rows: list[int] = []
    explicit, fused = attention.explicit, attention.fused
    monkeypatch.setattr(attention, "explicit", counted(explicit, rows))
    monkeypatch.setattr(attention, "fused", counted(fused, rows))
    in_blocks, record = recorded(CAUSAL, **given)
    assert rows == [2, 2, 2]
    torch.testing.assert_close(in_blocks, whole)
    assert record.query.shape[1] == LENGTH
    assert record.check() < 1e-5


def counted(compute: Any, rows: list[int]) -> Any:
    """The same, which writes down how many queries it computes."""

    def wrapped(call: AttentionCall, *others: Any) -> Any:
        rows.append(call.query.shape[-2])
        return compute(call, *others)

    return wrapped


def test_a_bias_that_comes_of_the_text_is_patched_with_the_head() -> None:
    """As in DeBERTa, whose biases are products of queries and keys with positions."""
    kept: dict[HookPoint, Tensor] = {}
    points = Patch("m", "t", frozenset({("weights", CAUSAL.name, 1)})).points
    own, theirs = drawn(1, 1, LENGTH, LENGTH), drawn(1, HEADS, LENGTH, LENGTH)
    query, key, value = (x[:1] for x in vectors())
    other = query.flip(-1), key.flip(-1), value

    def weights(hooks: Hooks, bias: Tensor, *given: Tensor) -> list[np.ndarray]:
        recorder = Recorder(level="attention", hooks=[hooks])
        with recording(recorder):
            attend(*given, CAUSAL, bias=bias)
        record = attention_record(recorder.attention[0], (), Projection())
        assert record.check() < 1e-5
        return [record.weights(head) for head in range(HEADS)]

    there = weights(cache_hooks(kept, points), theirs, *other)
    here = weights({}, own, query, key, value)
    patched = weights(patch_hooks(kept, [points]), own, query, key, value)
    for head in range(HEADS):
        np.testing.assert_allclose(patched[head], (there if head == 1 else here)[head], atol=1e-6)
    assert np.abs(there[1] - here[1]).max() > 0.01
