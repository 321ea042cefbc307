"""One token as a key of every head: its weight, value and edges, and where the weight goes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from model import Intervention, Model, Trace
from model.analysis import edge_values
from model.analysis.heads import sinks
from model.analysis.heads.sinks import hiding, moved_weight, token_as_key
from model.analysis.heads.statistics import Family, families
from model.trace.records import Attention
from tests.cases import cases
from tests.model.tiny import loaded, run


@pytest.fixture(params=[2, 512], autouse=True)
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few queries are computed at once."""
    monkeypatch.setattr(sinks, "TOGETHER", request.param)


def rows_of(attention: Attention, head: int, position: int) -> list[int]:
    """The other tokens that may attend to one."""
    mask = attention.mask_of(head)
    return [
        query
        for query in range(attention.query.shape[1])
        if (attention.kind == "cross" or query != position)
        and (mask is None or mask[query, position])
    ]


@cases("position, name", product([0, 2], ["gpt", "llama", "bert", "translator", "all-stages"]))
def test_every_number_of_a_key_is_that_of_a_plain_loop(position, name) -> None:
    model = loaded(name)
    trace = run(model)
    for family in families(trace):
        found = token_as_key(model, trace, family, position)
        for number, (place, head) in enumerate(found.heads):
            attention = trace.find(place)
            edges = edge_values(model, trace, place, head)
            rows = rows_of(attention, head, position)
            mask = attention.mask_of(head)
            keys = attention.key.shape[1]
            evens = [1 / (keys if mask is None else mask[row].sum()) for row in rows]
            values = [
                float(np.sqrt((one.astype(float) ** 2).sum())) for one in attention.value[head]
            ]
            others = [value for key, value in enumerate(values) if key != position]
            expected = {
                "rows": len(rows),
                "weight": np.mean([attention.weights(head)[row, position] for row in rows]),
                "even": np.mean(evens),
                "value": values[position],
                "other_values": np.mean(others),
                "edge": np.mean([edges.norms[row, position] for row in rows]),
                "edges": np.mean([edges.norms[row].sum() for row in rows]),
                "learned": np.mean([attention.sink_weights(head)[row] for row in rows]),
            }
            measured = {field: float(getattr(found, field)[number]) for field in expected}
            assert measured == pytest.approx(expected, rel=1e-5)
            assert found.value_ratio[number] == pytest.approx(values[position] / np.mean(others))
            assert found.carried[number] == pytest.approx(
                expected["edge"] / expected["edges"], 1e-5
            )


@cases(
    "change", [Intervention(ablated=frozenset({("decoder.0.self", 1)})), Intervention(dropout=0.5)]
)
def test_edges_are_those_of_the_changed_run(change) -> None:
    model = loaded("gpt")
    trace = run(model, change)
    for family in families(trace):
        found = token_as_key(model, trace, family)
        for number, (place, head) in enumerate(found.heads):
            norms = edge_values(model, trace, place, head).norms
            rows = rows_of(trace.find(place), head, 0)
            assert found.edge[number] == pytest.approx(norms[rows, 0].mean(), rel=1e-5)
            assert found.edges[number] == pytest.approx(norms[rows].sum(-1).mean(), rel=1e-5)


def test_the_last_token_of_a_causal_text_is_no_ones_key() -> None:
    model = loaded("gpt")
    trace = run(model)
    last = len(trace.tokens) - 1
    with pytest.raises(ValueError, match=f"position {last}"):
        token_as_key(model, trace, families(trace)[0], last)


def hidden(model: Model, trace: Trace, family: Family, position: int) -> Trace:
    target = trace.target_tokens and " ".join(one.text for one in trace.target_tokens[1:])
    return model.trace(trace.text, target or None, hiding(trace, family, position))


@cases("position, name", product([0, 2], ["gpt", "bert", "translator", "all-stages"]))
def test_the_weight_of_a_hidden_token_goes_to_the_other_keys(position, name) -> None:
    model = loaded(name)
    trace = run(model)
    for family in families(trace):
        changed = hidden(model, trace, family, position)
        moved = moved_weight(trace, changed, family, position)
        for number, (place, head) in enumerate(family.heads(trace)):
            before, after = trace.find(place), changed.find(place)
            rows = rows_of(before, head, position)
            assert not after.weights(head)[rows, position].any()
            for key in range(before.key.shape[1]):
                apart = [after.weights(head)[r, key] - before.weights(head)[r, key] for r in rows]
                assert moved[number, key] == pytest.approx(float(np.mean(apart)), abs=1e-6)
            lost = token_as_key(model, trace, family, position).weight[number]
            assert moved[number, position] == pytest.approx(-lost, abs=1e-6)
            taken = [after.sink_weights(head)[r] - before.sink_weights(head)[r] for r in rows]
            assert moved[number].sum() == pytest.approx(-float(np.mean(taken)), abs=1e-5)
            assert (before.sinks is not None) == bool(np.any(taken))


def test_a_head_whose_window_ends_before_the_token_has_no_row() -> None:
    model = loaded("gpt")
    trace = run(model)
    narrow = replace(
        trace.attention[0], look_ahead=False, own_mask=np.eye(len(trace.tokens), dtype=bool)
    )
    cut = replace(trace, attention=(narrow, *trace.attention[1:]))
    family = families(cut)[0]
    found = token_as_key(model, cut, family)
    assert found.rows[: narrow.heads].tolist() == [0] * narrow.heads
    assert np.isnan(found.weight[: narrow.heads]).all()
    assert not np.isnan(found.weight[-1])
    assert np.isnan(moved_weight(cut, cut, family, 0)[0]).all()
