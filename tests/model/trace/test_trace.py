"""A trace is plain, closed, its own, and safe to share; an Intervention is a key."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from model import Attention, Intervention, Model, Trace
from model.trace.blocks import of_queries
from model.trace.records import NormRecord
from model.trace.trace import Logits
from tests.cases import cases
from tests.model.tiny import SENTENCE, TINY, build, loaded, run, sentence, target

PLAIN = (str, bytes, int, float, bool, type(None), Intervention)
STEPS = ("scores", "scaled", "masked", "weights", "dropped", "context")


def parts(value: Any) -> Iterator[Any]:
    """Everything that hangs on a value: fields, members, items."""
    yield value
    if isinstance(value, Intervention):
        return
    if isinstance(value, Logits):
        yield value.all
    elif is_dataclass(value):
        for field in fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from parts(key)
            yield from parts(item)
    elif isinstance(value, (tuple, list, frozenset, set)):
        for item in value:
            yield from parts(item)


def arrays(trace: Trace) -> Iterator[np.ndarray]:
    """Every array that a trace hands out, kept or derived."""
    yield from (part for part in parts(trace) if isinstance(part, np.ndarray))
    yield from trace.streams.values()
    for attention in trace.attention:
        yield from (attention.query, attention.key, attention.value)
        yield from (getattr(attention, step)(0) for step in STEPS)
        if attention.mask is not None:
            yield attention.mask
    for norm in trace.norms:
        yield from (norm.variance, norm.normalized, norm.output)
    if trace.positions is not None:
        yield trace.positions


def test_a_trace_holds_plain_values_only(model: Model) -> None:
    trace = model.trace(sentence(model), target(model), record="full", explicit=True)
    kinds = {type(part) for part in parts(trace)}
    ours = {kind for kind in kinds if kind.__module__.startswith("model.")}
    plain = {"model.trace.trace", "model.trace.records"}
    plain |= {"model.nn.intervention", "model.nn.config", "model.nn.places"}
    # Records, an intervention, how vectors were made; and a way to the words of the prediction.
    assert {kind.__module__ for kind in ours} == plain
    rest = kinds - ours - {np.ndarray, tuple, dict}
    assert all(issubclass(kind, PLAIN) for kind in rest), rest


@cases("explicit", [False, True])
def test_every_array_is_single_precision_and_read_only(explicit, model: Model) -> None:
    trace = model.trace(sentence(model), target(model), record="full", explicit=explicit)
    found = list(arrays(trace))
    assert len(found) > 20
    for array in found:
        assert array.dtype in (np.float32, np.bool_)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_what_a_model_hands_out_beside_a_trace_is_read_only_too(model: Model) -> None:
    trace = model.trace(sentence(model), target(model))
    handed = [model.embedding, model.head_output(trace.attention[0], 0)]
    if trace.logits is not None:
        handed.append(model.unembed(trace.residual["decoder"][0]))
    for array in handed:
        assert array.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_record_is_written_by_its_name_and_its_shape() -> None:
    trace = loaded("gpt").trace(SENTENCE, record="full")
    attention, norm, record = trace.attention[0], trace.norms[0], trace.feed_forward[0]
    heads, queries, keys = attention.sizes
    assert (
        repr(attention) == f"<Attention decoder.0.self: causal, {heads} heads, {queries} × {keys}>"
    )
    tokens, width = norm.input.shape
    assert repr(norm) == f"<NormRecord {norm.name}: layer norm, {tokens} tokens × {width}>"
    shape = "{} tokens × {}".format(*record.before.shape)
    assert repr(record) == f"<FeedForwardRecord {record.name}: {shape}>"
    assert repr(trace.prediction) == "<Logits: {} tokens × {}>".format(*trace.logits.shape)
    layers = len(trace.attention)
    assert repr(trace) == f"<Trace of {trace.model}: {tokens} tokens, {layers} attention layers>"


def test_records_cannot_be_reassigned() -> None:
    trace = loaded("gpt").trace(SENTENCE)
    for record, field in ((trace, "text"), (trace.attention[0], "scale"), (trace.norms[0], "mean")):
        with pytest.raises(AttributeError):
            setattr(record, field, None)


@cases("name", TINY)
def test_a_trace_stays_what_it_was_when_the_weights_change(name) -> None:
    model = build(name)
    trace = model.trace(sentence(model), target(model), record="full")
    before = [array.copy() for array in arrays(trace)]
    for parameter in model.module.parameters():
        parameter.data.add_(1.0)
    for old, new in zip(before, arrays(trace), strict=True):
        np.testing.assert_array_equal(old, new)
    assert trace.check() < 1e-5


def test_the_bytes_of_a_trace_are_counted(model: Model) -> None:
    trace = model.trace(sentence(model), target(model))
    owned = {array.__array_interface__["data"][0]: array.nbytes for array in arrays_kept(trace)}
    assert trace.nbytes == pytest.approx(sum(owned.values()), rel=0.25)
    explicit = model.trace(sentence(model), target(model), explicit=True)
    assert explicit.nbytes > trace.nbytes


def arrays_kept(trace: Trace) -> Iterator[np.ndarray]:
    return (part for part in parts(trace) if isinstance(part, np.ndarray))


def test_tokens_are_exactly_the_ids_that_were_fed(model: Model) -> None:
    text = sentence(model)
    trace = model.trace(text, target(model))
    ids = [token.id for token in trace.tokens]
    np.testing.assert_allclose(
        trace.embeddings / (model.config.d_model**0.5 if model.config.scaled_embedding else 1),
        model.embedding[ids],
        rtol=1e-6,
    )
    assert model.tokenizer.decode(ids).replace(" ", "") == text.replace(" ", "")
    assert (trace.model, trace.text) == (model.name, text)
    assert len(trace.tokens_of(trace.source)) == len(ids)
    if model.config.shape == "encoder-decoder":
        assert trace.target_tokens[0].id == model.tokenizer.start
        assert trace.target_tokens[0].special
    else:
        assert trace.target_tokens == ()


def test_interventions_with_equal_values_are_one_cache_key() -> None:
    one = Intervention(hidden=frozenset({1, 2}), blocked=frozenset({(0, 1)}), only=frozenset({"a"}))
    same = Intervention(hidden=[2, 1], blocked=[[0, 1]], only=["a"])  # type: ignore[arg-type]
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same, Intervention(), Intervention(fill=-float("inf"))}) == 2


@cases("intervention", [
    {"scale": 1.0},
    {"mask": "none"},
    {"hidden": {0}},
    {"blocked": {(1, 0)}},
    {"fill": -1e9},
    {"positions": False},
    {"ablated": {("decoder.0.self", 0)}},
    {"dropout": 0.1},
    {"seed": 1},
    {"only": {"decoder.0.self"}},
])  # fmt: skip
def test_each_field_makes_another_key(intervention) -> None:
    changed = Intervention(**intervention)
    assert changed != Intervention()
    assert hash(changed) != hash(Intervention())
    assert changed.changes is not (intervention.keys() <= {"seed", "only"})
    assert set(intervention) <= {field.name for field in fields(Intervention)}


def snapshot(trace: Trace) -> list[np.ndarray]:
    records: list[Attention | NormRecord] = [*trace.attention, *trace.norms]
    kept = [array for record in records for array in arrays_kept_in(record)]
    return [*kept, *(state for states in trace.residual.values() for state in states)]


def arrays_kept_in(record: Attention | NormRecord) -> list[np.ndarray]:
    return [part for part in parts(record) if isinstance(part, np.ndarray)]


@pytest.mark.models(["gpt", "llama", "bert", "translator"])
def test_threads_never_see_each_others_tensors_or_interventions(model: Model) -> None:
    """Two threads, a hundred traces each: other sentences, and an intervention in one of them only."""
    name = model.attention_names[0]
    intervention = Intervention(scale=1.0, positions=False, ablated=frozenset({(name, 1)}))
    read = target(model)
    jobs = [
        partial(model.trace, SENTENCE, read, intervention),
        partial(model.trace, "the dog sat", read),
    ]
    alone = [snapshot(job()) for job in jobs]
    wrong: list[str] = []
    ready = threading.Barrier(len(jobs))

    def trace_often(number: int) -> None:
        ready.wait()
        for _ in range(100):
            together = snapshot(jobs[number]())
            same = len(together) == len(alone[number]) and all(
                np.array_equal(ours, theirs)
                for ours, theirs in zip(together, alone[number], strict=True)
            )
            if not same:
                wrong.append(f"thread {number}")

    threads = [threading.Thread(target=trace_often, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_layers_with_equal_masks_keep_one() -> None:
    model = loaded("all-stages")
    trace = run(model, Intervention(window=5))
    masks = {id(one.own_mask): one.own_mask for one in trace.attention}
    assert (len(trace.attention), len(masks)) == (4, 1)
    (mask,) = masks.values()
    bare = replace(trace, attention=tuple(replace(one, own_mask=None) for one in trace.attention))
    assert trace.nbytes == bare.nbytes + mask.nbytes
    own = model.trace("the " * 9 + "cat").attention  # longer than the window of every other layer
    assert own[0].own_mask is own[2].own_mask is not None
    assert own[1].own_mask is None or not np.array_equal(own[0].own_mask, own[1].own_mask)


@cases("name", ["all-stages", "distance-buckets", "gpt", "bert", "translator"])
def test_some_queries_have_the_rows_that_they_have_among_all(name) -> None:
    model = loaded(name)
    place = model.attention_names[0]
    cells = frozenset({(place, 1, 4, 1, 0.25), (place, 1, 0, 0, 0.5)})
    for intervention in (Intervention(), Intervention(weights=cells), Intervention(dropout=0.5)):
        for attention in run(model, intervention).attention:
            some = of_queries(attention, slice(2, 5))
            for head in range(attention.heads):
                for step in ("scores", "biased", "masked", "weights", "dropped", "sink_weights"):
                    ours, all_rows = (getattr(some, step)(head), getattr(attention, step)(head))
                    np.testing.assert_allclose(ours, all_rows[2:5], atol=1e-5)
            assert some.check() < 1e-4
