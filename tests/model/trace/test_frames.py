"""The weights of a pass as arrays, as a table and with named axes; and records that are printed in a line."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model import Model, Trace
from model.analysis import edge_values, score_parts
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, run

FAMILIES = ("llama", "gpt_oss", "t5")  # grouped heads, sinks, biases and two stacks


@cases("family", FAMILIES)
def test_all_heads_are_the_heads_one_by_one_in_families_of_the_hub(family) -> None:
    assert_whole(hub_models.traced(hub_models.loaded(family)))


def test_all_heads_are_the_heads_one_by_one(trace: Trace) -> None:
    assert_whole(trace)


def assert_whole(trace: Trace) -> None:
    by_name = trace.weights()
    assert list(by_name) == [one.name for one in trace.attention]
    for attention in trace.attention:
        weights = attention.weights()
        assert weights.shape == attention.sizes
        assert weights.dtype == np.float32
        assert not weights.flags.writeable
        for head in range(attention.heads):
            assert np.array_equal(weights[head], attention.weights(head))
            sums = weights[head].sum(-1) + attention.sink_weights(head)
            assert sums == pytest.approx(np.ones(attention.sizes[1]), abs=1e-5)
        assert np.array_equal(by_name[attention.name], weights)


@cases("name", ["gpt", "bert", "translator"])
def test_a_table_has_a_row_for_each_weight(name) -> None:
    trace = run(loaded(name))
    frame = trace.to_dataframe()
    columns = ["layer", "head", "query", "key", "query_token", "key_token", "weight"]
    assert list(frame.columns) == columns
    assert len(frame) == sum(int(np.prod(one.sizes)) for one in trace.attention)
    for attention in trace.attention:
        rows = frame[frame["layer"] == attention.name]
        assert np.array_equal(
            rows["weight"].to_numpy().reshape(attention.sizes), attention.weights()
        )
        tokens = {"query": trace.queries_of(attention), "key": trace.keys_of(attention)}
        for axis, of_axis in tokens.items():
            texts = [of_axis[at].text for at in rows[axis]]
            assert rows[f"{axis}_token"].tolist() == texts
        head, query, key = attention.heads - 1, len(tokens["query"]) - 1, 1
        cell = rows[(rows["head"] == head) & (rows["query"] == query) & (rows["key"] == key)]
        assert cell["weight"].tolist() == [attention.weights(head)[query, key]]
        own = attention.to_dataframe()
        assert list(own.columns) == ["layer", "head", "query", "key", "weight"]
        assert own["weight"].tolist() == rows["weight"].tolist()


def test_named_axes_hold_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    stand_in = SimpleNamespace(DataArray=lambda data, **named: made.append({"data": data, **named}))
    monkeypatch.setitem(sys.modules, "xarray", stand_in)
    trace = run(loaded("translator"))
    assert list(trace.to_xarray()) == [one.name for one in trace.attention]
    for attention, array in zip(trace.attention, made, strict=True):
        assert np.array_equal(array["data"], attention.weights())
        assert (array["dims"], array["name"]) == (("head", "query", "key"), attention.name)
        for axis, tokens in (("query", trace.queries_of), ("key", trace.keys_of)):
            texts = [token.text for token in tokens(attention)]
            assert array["coords"][f"{axis}_token"] == (axis, texts)


def test_without_its_package_the_other_way_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    trace = run(loaded("gpt"))
    for ask in (trace.to_xarray, trace.attention[0].to_xarray):
        with pytest.raises(ImportError, match=r"pip install xarray.*to_dataframe"):
            ask()


@cases("name", ["house-gpt", "translator", "bert"])
def test_a_record_is_printed_in_one_short_line(name) -> None:
    model: Model = loaded(name)
    trace = run(model, record="full")
    records: list[object] = [trace, trace.attention[0], trace.norms[0], trace.feed_forward[0]]
    records += [trace.tokens[0], trace.prediction, trace.vocabulary, trace.intervention, model]
    if model.config.shape == "decoder":
        records.append(score_parts(model, trace, trace.attention[1].name, 0, 3, 1))
        records.append(edge_values(model, trace, trace.attention[1].name, 0))
    for record in records:
        printed = repr(record)
        assert len(printed) < 500
        assert "\n" not in printed
        assert "array(" not in printed
