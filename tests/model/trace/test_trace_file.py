"""What leaves the app comes back as it was: the trace file and the CSV."""

import errno
import io
from dataclasses import fields, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load

from model import Intervention, Model, Trace
from model.nn.patches import Patch
from model.nn.places import Place
from model.nn.stages import STAGES
from model.nn.steering import Steering
from model.trace.arrays import matrix_csv, sheltered
from model.trace.description import ARRAYS
from model.trace.records import Attention, ExpertsRecord, FeedForwardRecord, NormRecord, Token
from model.trace.trace_file import read_trace, trace_file
from tests.arrays_of_trace import every_array
from tests.cases import cases
from tests.csv_reading import bared, read_matrix_csv
from tests.model import hub_models
from tests.model.made_trace import made_trace
from tests.model.tiny import loaded, run

RECORDS = (
    Trace, Attention, Place, NormRecord, FeedForwardRecord, ExpertsRecord, Token, Intervention, Patch,
)  # fmt: skip

HOSTILE = [
    "=1+1", "+SUM(A1)", "-2", "@x", "\t=1", "\r=1", "'quoted", 'a"b,c\r\nd',
    "</script><script>alert(1)</script>", "\u202e🦊", "", " ",
]  # fmt: skip


# Of a trace, and of its records: what is no array.
OF_TRACE = ("model", "text", "device", "intervention", "tokens", "target_tokens", "config")
OF_RECORDS = (
    "place", "heads", "scale", "mask_value", "ablated", "weights_set", "look_ahead", "cap",
    "projection", "window", "doubt", "name", "kind", "epsilon",
)  # fmt: skip


def told(trace: Trace) -> list[object]:
    """What a trace holds beside its arrays. Spans do not count when tokens are compared."""
    records = (*trace.attention, *trace.norms, *trace.experts, *trace.feed_forward)
    words = trace.vocabulary.named(range(trace.vocabulary.size)) if trace.vocabulary else ()
    return [
        *(getattr(trace, name) for name in OF_TRACE),
        *(getattr(record, name, None) for record in records for name in OF_RECORDS),
        *(token.span for token in trace.tokens),
        *((word.id, word.text, word.special) for word in words),
        trace.check(),
    ]


def assert_same_trace(before: Trace, after: Trace) -> None:
    assert told(before) == told(after)
    ours, theirs = (
        [
            *every_array(replace(trace, feed_forward=())),
            *(array for one in trace.feed_forward for array in (one.before, one.hidden)),
        ]
        for trace in (before, after)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_trace_comes_back_from_its_file_bit_for_bit(model: Model) -> None:
    name = model.attention_names[0]
    intervention = Intervention(
        scale=0.5,
        mask="causal",
        hidden=frozenset({1}),
        blocked=frozenset({(2, 0), (3, 1)}),
        fill=-1e9,
        positions=False,
        ablated=frozenset({(name, 0)}),
        stream=frozenset({(name, 1, 2, -0.5)}),
        dropout=0.2,
        seed=3,
        only=frozenset({name}),
        window=3,
        cap=False,
        bias=False,
        sinks=False,
        steering=Steering(np.linspace(-1, 1, model.config.d_model, dtype=np.float32), name, -1.5),
    )
    for trace in (run(model, record="full"), run(model, intervention), run(model, explicit=True)):
        file = trace_file(trace)
        assert_same_trace(trace, read_trace(file))
        derived = sum(one.hidden.nbytes for one in trace.feed_forward if one.kept is None)
        named = 30 * (trace.vocabulary.size if trace.vocabulary else 0)
        assert len(file) < 1.1 * (trace.nbytes + derived) + named + 60_000  # each is stored once


@cases("family", ["mistral", "bart", "mixtral"])
def test_a_trace_of_a_hub_model_comes_back_too(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model, Intervention(scale=0.5), record="full")
    assert_same_trace(trace, read_trace(trace_file(trace)))


def test_a_trace_whose_writing_breaks_off_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(file: BinaryIO, *written: object) -> None:
        file.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "run.safetensors"
    run(loaded("gpt-bytes")).save(file)
    before = file.read_bytes()
    monkeypatch.setattr("model.trace.description.array_file.write", breaks_off)
    with pytest.raises(OSError, match="No space left"):
        run(loaded("gpt-bytes")).save(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_the_stages_of_later_models_come_back() -> None:
    made = made_trace([np.tri(4, dtype=np.float32)] * 2, "a b c d")
    bias = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    staged = replace(
        made.attention[0],
        steps={},
        cap=2.5,
        bias=bias,
        sinks=np.array([1, -1], dtype=np.float32),
        window=3,
    )
    trace = replace(made, attention=(staged,), summands={"decoder": {}})
    assert_same_trace(trace, read_trace(trace_file(trace)))


def test_every_field_of_a_record_is_written() -> None:
    """A field that a record gains must be written and read, and named here."""
    assert {one.field for one in STAGES if one.is_array} <= {*ARRAYS["attention"]}
    assert {kind.__name__: len(fields(kind)) for kind in RECORDS} == {
        "Trace": 18,
        "ExpertsRecord": 4,
        "Attention": 17,
        "Place": 4,
        "NormRecord": 9,
        "FeedForwardRecord": 4,  # the file holds what the activation gives, so not its name
        "Token": 5,
        "Intervention": 18,  # of `steering` a file without one says nothing
        "Patch": 3,
    }


def test_the_file_is_plain_safetensors_with_the_names_that_the_documentation_gives() -> None:
    model = loaded("gpt")
    trace = run(model, record="full")
    arrays = load(trace_file(trace))
    np.testing.assert_array_equal(arrays["states/decoder/0"], trace.residual["decoder"][0])
    attention = trace.find("decoder.1.self")
    np.testing.assert_array_equal(arrays["attention/decoder.1.self/query"], attention.query)
    np.testing.assert_array_equal(arrays["logits"], trace.logits)
    hidden = arrays["feed_forward/decoder.0.feed_forward/hidden"]
    np.testing.assert_array_equal(hidden, trace.feed_forward[0].hidden)


def test_hostile_text_stands_in_the_trace_file_as_text() -> None:
    model = loaded("minilm")
    for text in ("=1+1 </script> \u202e 🦊", '{"a": "\\u0000"} \x07'):
        trace = model.trace(text)
        assert read_trace(trace_file(trace)).text == trace.text
        assert read_trace(trace_file(trace)).tokens == trace.tokens


def test_a_csv_read_again_equals_the_trace(model: Model) -> None:
    trace = run(model)
    attention = trace.attention[0]
    mask = attention.mask
    rows = [f"{at} {token.text}" for at, token in enumerate(trace.queries_of(attention))]
    columns = [f"{at} {token.text}" for at, token in enumerate(trace.keys_of(attention))]
    weights = attention.weights(1)
    shown = weights if mask is None else np.where(mask, weights, np.float32("nan"))
    text = matrix_csv(
        {"baseline": shown, "scores": attention.scores(1)},
        rows=rows,
        columns=columns,
        corner="query \\ key",
    )
    found = read_matrix_csv(text)
    np.testing.assert_array_equal(found["baseline"].values, shown)
    np.testing.assert_array_equal(found["scores"].values, attention.scores(1))
    assert list(found["scores"].index) == rows
    assert list(found["scores"].columns) == columns
    frame = pd.read_csv(io.StringIO(text))
    again = frame[frame["run"] == "scores"].iloc[:, 2:].to_numpy(np.float32)
    np.testing.assert_array_equal(again, attention.scores(1))


def test_no_cell_of_a_csv_begins_like_a_formula_and_every_name_comes_back() -> None:
    values = np.arange(len(HOSTILE) ** 2, dtype=np.float32).reshape(len(HOSTILE), -1) - 0.1
    text = matrix_csv({"=run": values}, rows=HOSTILE, columns=HOSTILE, corner="query \\ key")
    (found,) = read_matrix_csv(text).values()
    assert list(found.index) == HOSTILE
    assert list(found.columns) == HOSTILE
    np.testing.assert_array_equal(found.values, values)
    for name in HOSTILE:
        assert not sheltered(name).startswith(("=", "+", "-", "@", "\t", "\r"))
        assert bared(sheltered(name)) == name


def test_numbers_of_any_size_come_back_from_a_csv() -> None:
    values = np.array([[1e-38, 3e38, -0.0, 1 / 3], [np.nan, 16777217, -1e-7, 0.1]], np.float32)
    text = matrix_csv({"run": values}, rows=["a", "b"], columns=list("wxyz"), corner="")
    np.testing.assert_array_equal(read_matrix_csv(text)["run"].values, values)
    with pytest.raises(ValueError, match="names"):
        matrix_csv({"run": values}, rows=["a"], columns=list("wxyz"), corner="")
