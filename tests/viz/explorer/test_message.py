"""The browser gets the recorded numbers themselves, once, and nothing it cannot read."""

import gc
import json
import math
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.nn.masks import window_mask
from model.trace.records import Attention
from tests.cases import cases
from tests.viz.explorer.records import labels, record
from viz.explorer import message as sent
from viz.explorer.message import payload
from viz.explorer.packing import packed, words


def made(attention: Attention, head: int = 0, baseline: Attention | None = None) -> sent.Json:
    return payload(
        attention,
        queries=labels(attention.query.shape[1]),
        keys=labels(attention.key.shape[1]),
        head=head,
        check=3e-7,
        baseline=baseline,
    )


def layer(message: sent.Json, name: str = "layer") -> dict[str, object]:
    found = message[name]
    assert isinstance(found, dict)
    return found


def floats(array: object) -> np.ndarray:
    assert isinstance(array, np.ndarray)
    assert array.dtype == "<f4"
    return array.ravel()


def test_vectors_and_output_arrive_bit_for_bit() -> None:
    attention = record(5, 7, kind="cross")
    got = layer(made(attention))
    for name in ("query", "key", "value", "output"):
        assert np.array_equal(floats(got[name]), getattr(attention, name).ravel())


def test_keys_and_values_that_heads_share_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = record(4, heads=6)
    query, key, value = attention.vectors
    grouped = replace(attention, vectors=(query, key[:2], value[:1]))
    got = layer(made(grouped))
    assert (got["keyGroup"], got["valueGroup"]) == (3, 6)
    assert np.array_equal(floats(got["key"]), key[:2].ravel())
    assert np.array_equal(floats(got["value"]), value[:1].ravel())
    each = query[0].nbytes
    monkeypatch.setattr(sent, "LIGHT", 0)
    monkeypatch.setattr(sent, "BUDGET", 8 * each)  # six queries and the two keys
    assert layer(made(grouped))["sent"] == 6
    monkeypatch.setattr(sent, "BUDGET", 8 * each - 1)
    some = layer(made(grouped, head=5))
    assert (some["first"], some["sent"]) == (3, 3)
    assert np.array_equal(floats(some["key"]), key[1].ravel())


def test_the_mask_arrives_bit_by_bit() -> None:
    mask = np.random.default_rng(1).random((5, 7)) > 0.5
    got = layer(made(record(5, 7, kind="cross", mask=mask)))
    bits = got["mask"]
    assert isinstance(bits, np.ndarray)
    assert np.array_equal(
        np.unpackbits(bits, count=35, bitorder="little").reshape(5, 7).astype(bool), mask
    )


@cases("mask_value", [-math.inf, -1e9, 0.0])
def test_the_message_is_strict_json_whatever_the_mask_value(mask_value) -> None:
    said = words(packed(made(record(mask_value=mask_value))))
    assert layer(said)["mask_value"] == (None if math.isinf(mask_value) else mask_value)


def test_a_check_that_is_not_a_number_is_left_out() -> None:
    attention = record(3)
    got = payload(
        attention, queries=labels(3), keys=labels(3), head=0, check=math.nan, baseline=None
    )
    assert got["check"] is None


def test_a_vector_that_is_not_finite_is_refused() -> None:
    attention = record(3)
    output = attention.output.copy()
    output[0, 0, 0] = math.nan
    with pytest.raises(ValueError, match="not finite"):
        made(replace(attention, output=output))


def test_tokens_that_do_not_fit_the_picture_are_refused() -> None:
    with pytest.raises(ValueError, match="6 queries and 6 keys; there are 5"):
        payload(record(6), queries=labels(5), keys=labels(6), head=0, check=0.0)
    with pytest.raises(ValueError, match="baseline has 4 queries"):
        made(record(6), baseline=record(4))


def test_the_ranges_hold_for_all_heads_of_the_layer() -> None:
    attention = record(6)
    ranges = layer(made(attention))["range"]
    assert isinstance(ranges, dict)
    largest = max(np.abs(attention.scores(head)).max() for head in range(attention.heads))
    assert ranges["scores"] == pytest.approx(largest)
    assert ranges["scaled"] == pytest.approx(largest * attention.scale)
    assert ranges["value"] == pytest.approx(np.abs(attention.value).max())


def test_a_layer_beyond_the_budget_sends_the_block_of_the_chosen_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = np.tri(6, dtype=bool) & (np.arange(6) != 2)  # no band: it is sent bit by bit
    attention = record(6, heads=5, mask=mask)
    each = 4 * attention.query[0].nbytes
    monkeypatch.setattr(sent, "BUDGET", 2 * each)
    assert layer(made(attention, head=3))["sent"] == 1  # the mask takes room too
    monkeypatch.setattr(sent, "BUDGET", 2 * each + mask.size // 8)
    got = layer(made(attention, head=3))
    assert (got["first"], got["sent"]) == (2, 2)
    assert np.array_equal(floats(got["query"]), attention.query[2:4].ravel())
    assert layer(made(attention, head=4))["sent"] == 1
    both = made(attention, head=3, baseline=record(6, heads=5, seed=1))
    assert (layer(both)["first"], layer(both)["sent"]) == (3, 1)
    assert layer(both, "baseline")["first"] == 3


def test_a_large_layer_sends_its_values_only_where_they_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention = record(6)
    monkeypatch.setattr(sent, "LIGHT", 4 * attention.query.nbytes - 1)
    without = layer(made(attention))
    assert without["value"] is without["output"] is None
    for name, sums in {"value": "valueSums", "output": "outputSums"}.items():
        expected = getattr(attention, name).sum(-1).ravel()
        np.testing.assert_allclose(floats(without[sums]), expected, atol=1e-5)
    for stage in ("value", "output"):
        whole = layer(
            payload(attention, queries=labels(6), keys=labels(6), head=0, check=0.0, stage=stage)
        )
        assert np.array_equal(floats(whole["output"]), attention.output.ravel())
        assert whole["digest"] == without["digest"]


def test_layers_that_differ_anywhere_have_other_names() -> None:
    attention = record(4)
    output = attention.output.copy()
    output[2, 3, 1] += 1
    others = [
        replace(attention, output=output),
        replace(attention, scale=0.5),
        replace(attention, mask_value=0.0),
        replace(attention, ablated=(1,)),
        record(4, seed=1),
        record(4, kind="self"),
    ]
    names = {layer(made(one))["digest"] for one in [attention, *others]}
    assert len(names) == 1 + len(others)
    assert layer(made(record(4)))["digest"] == layer(made(attention))["digest"]


def test_a_packed_message_holds_its_words_and_then_its_arrays() -> None:
    floats_, bytes_ = np.arange(3, dtype="<f4"), np.arange(5, dtype=np.uint8)
    block = packed({"word": "é", "part": {"bytes": bytes_, "floats": floats_}})
    length = int.from_bytes(block[:4], "little")
    words = json.loads(block[4 : 4 + length])
    assert words["word"] == "é"
    for array in (floats_, bytes_):
        found = next(part for part in words["part"].values() if part["count"] == array.size)
        start = 4 + length + found["start"]
        assert start % 4 == 0
        content = block[start : start + array.nbytes]
        assert np.array_equal(np.frombuffer(content, array.dtype), array)


def test_dropout_sends_the_weights_as_applied() -> None:
    attention = record(4)
    assert layer(made(attention))["dropped"] is None
    weights = np.stack([attention.weights(head) for head in range(3)])
    dropped = weights * np.float32(2) * (np.random.default_rng(0).random(weights.shape) > 0.5)
    steps = {
        "scores": np.stack([attention.scores(head) for head in range(3)]),
        "masked": np.stack([attention.masked(head) for head in range(3)]),
        "weights": weights,
        "dropped": dropped.astype(np.float32),
    }
    got = layer(made(replace(attention, steps=steps)))
    assert np.array_equal(floats(got["dropped"]), dropped.astype(np.float32).ravel())


def test_hostile_tokens_are_escaped_where_plotly_reads_markup_and_plain_elsewhere() -> None:
    got = payload(record(1), queries=["<b>#000001"], keys=["<b>#000001"], head=0, check=0.0)
    queries = got["queries"]
    assert isinstance(queries, dict)
    assert queries["full"] == ["<b>#000001"]
    assert queries["plotly"] == ["&lt;b&gt;#\u2060000001"]


def test_the_words_follow_what_the_layer_does() -> None:
    def words(attention: Attention) -> str:
        return json.dumps(made(attention)["stages"])

    assert "future" in words(record(kind="causal"))
    assert "future" not in words(record(kind="self"))
    assert "every key" in words(replace(record(kind="causal"), look_ahead=False))
    assert "still get weight" in words(record(mask_value=-1.0))
    assert "nothing is scaled" in words(record(scale=1.0))


def test_a_message_names_its_parts_and_can_leave_their_arrays_out() -> None:
    attention, baseline = record(5), record(5, seed=1)
    alone, both = made(attention), made(attention, baseline=baseline)
    assert sent.parts(alone) == sent.parts(both)[:1]
    assert len(set(sent.parts(both))) == 2
    bare = sent.without_arrays(both, sent.parts(both))
    for name in ("layer", "baseline"):
        whole, kept = layer(both, name), layer(bare, name)
        assert {key for key in whole if kept[key] is None} >= {"query", "key", "value", "output"}
        assert not any(isinstance(part, np.ndarray) for part in kept.values())
        assert [kept[key] for key in ("digest", "heads", "name")] == [
            whole[key] for key in ("digest", "heads", "name")
        ]
    changed = sent.without_arrays(both, sent.parts(both)[1:])
    assert changed["layer"] == both["layer"]
    assert changed["baseline"] == bare["baseline"]
    assert sent.without_arrays(alone, sent.parts(alone))["baseline"] is None
    assert made(attention) == alone  # what is kept of the layer is whole


def test_a_part_tells_a_layer_with_its_values_from_one_without() -> None:
    attention = record(64, heads=12, width=640)  # more than comes along at once
    without, complete = (
        payload(attention, queries=labels(64), keys=labels(64), head=0, check=0.0, stage=stage)
        for stage in ("weights", "output")
    )
    assert layer(without)["digest"] == layer(complete)["digest"]
    assert sent.parts(without) != sent.parts(complete)


def test_a_layer_without_a_mask_has_no_masked_stage_unless_an_intervention_makes_or_lifts_one() -> (
    None
):
    bare = record(kind="self")
    mask = np.tri(bare.query.shape[1], dtype=bool)
    masked = replace(bare, own_mask=mask)

    def names(message: sent.Json) -> list[str]:
        found = message["stages"]
        assert isinstance(found, list)
        return [stage["name"] for stage in found]

    assert "masked" not in names(made(bare))
    assert "masked" in names(made(masked))
    assert "masked" in names(made(masked, baseline=bare))
    assert "masked" in names(made(bare, baseline=masked))
    formulas = made(bare)["formulas"]
    assert isinstance(formulas, dict)
    assert "masked" not in formulas["weights"]["general"] + formulas["weights"]["plain"]


def test_a_record_that_was_sent_is_not_kept_for_it() -> None:
    attention = record(5)
    kept, name = weakref.ref(attention), str(layer(made(attention))["part"])
    assert layer(made(attention))["part"] == name
    vectors = [weakref.ref(array) for array in (*attention.vectors, attention.output)]
    del attention
    gc.collect()
    assert kept() is None
    assert [array() for array in vectors] == [None] * 4


@cases("hidden", [False, True])
def test_a_title_says_all_that_the_mask_of_a_run_forbids(hidden) -> None:
    """A window that an intervention asks for, on a model without one; then a hidden key as well."""
    mask = window_mask(6, 6, 2, causal=True).numpy()
    mask[:, 3] &= not hidden
    shown = made(record(6, mask=mask))["stages"]
    titles = {one["name"]: one["title"] for one in shown}
    (look,) = [one["look"] for one in shown if one["name"] == "masked"]
    assert ("window of 2:" in look) != hidden
    for name in ("masked", "weights"):
        assert titles[name].endswith("; hatched = masked" if hidden else "of 2, masked")
    whole = {one["name"]: one["title"] for one in made(record(6))["stages"]}
    assert whole["masked"].endswith("the future, masked")


def test_the_message_is_as_small_as_its_numbers() -> None:
    attention = record(64, heads=12, width=64)
    numbers = 4 * 12 * 64 * 64 * 4
    assert len(packed(made(attention))) < numbers + 40_000
    assert math.isclose(attention.weights(0).sum(), 64, rel_tol=1e-4)


def test_equal_arrays_of_a_message_stand_in_it_once() -> None:
    one = np.arange(600, dtype="<f4")
    block = packed({"first": one, "second": [one.copy()], "other": one + 1})
    said = words(block)
    (second,) = said["second"]  # type: ignore[misc]
    assert second == said["first"]
    assert said["other"]["start"] == one.nbytes  # type: ignore[call-overload, index]
    assert 2 * one.nbytes < len(block) < 3 * one.nbytes


def test_a_block_after_another_has_only_the_arrays_that_are_new() -> None:
    one, other = np.arange(600, dtype="<f4"), np.arange(7, dtype=np.uint8)
    before = {"first": one}
    block = packed({"same": one.copy(), "new": other, "again": one + 1}, before)
    said = words(block)
    length = int.from_bytes(block[:4], "little")
    arrays = packed(before)[-one.nbytes :] + block[4 + length :]
    assert len(arrays) == 2 * one.nbytes + 8
    for name, array in {"same": one, "new": other, "again": one + 1}.items():
        place: Any = said[name]
        found = np.frombuffer(arrays, array.dtype, place["count"], place["start"])
        assert np.array_equal(found, array)
