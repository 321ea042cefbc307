"""A file that holds no trace is refused in a sentence, whatever was changed in it, before it takes memory."""

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model import Trace
from model.exchange import read
from model.system.foreign import DEEPEST, strict_json
from model.trace.array_file import MOST_HEADER
from model.trace.description import holds
from model.trace.trace_file import load_trace, read_trace, trace_file
from tests.cases import cases
from tests.model.tiny import loaded, run
from tests.model.trace.altered_files import (
    joined,
    parts,
    with_arrays,
    with_description,
    with_header,
)
from tests.model.trace.wrong_files import BIAS, WRONG_HEADERS, WRONG_NUMBERS, WRONG_WORDS


@pytest.fixture(scope="module")
def whole() -> bytes:
    return trace_file(run(loaded("gpt"), record="full"))


def refused(file: bytes) -> bool:
    """Whether a file is refused in a sentence. What is read instead can be computed with."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            used(read_trace(file))
    except ValueError as refusal:
        said = str(refusal)
    else:
        return False
    assert "readable trace: " in said
    assert len(said) < 600
    return True


def used(trace: Trace) -> None:
    """Numbers made of a trace that was read: none of them is no number."""
    assert np.isfinite(trace.check())
    for attention in trace.attention:
        assert np.isfinite(attention.weights(0)).all()
    for norm in trace.norms:
        assert np.isfinite(norm.output).all()
        assert np.isfinite(norm.variance).all()


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_changed_byte_is_refused_or_gives_numbers_that_can_be_computed_with(
    whole: bytes, data: st.DataObject
) -> None:
    header = 8 + int.from_bytes(whole[:8], "little")
    at = data.draw(st.integers(0, header - 1) | st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    refused(bytes(changed))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_that_was_cut_or_made_longer_is_refused(whole: bytes, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(whole) - 1))
    assert refused(whole[:size])
    assert refused(whole + whole[: size + 1])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        ),
        max_leaves=20,
    ),
    st.data(),
)
@settings(max_examples=300, deadline=None)
def test_anything_may_stand_at_any_place_of_the_description(
    whole: bytes, thing: object, data: st.DataObject
) -> None:
    def change(said: Any) -> None:
        inside, key = said, data.draw(st.sampled_from(sorted(said)))
        while isinstance(inside[key], dict | list) and inside[key] and data.draw(st.booleans()):
            inside = inside[key]
            keys = sorted(inside) if isinstance(inside, dict) else range(len(inside))
            key = data.draw(st.sampled_from(list(keys)))
        inside[key] = thing

    refused(with_description(whole, change))


@cases("what", WRONG_WORDS)
def test_a_description_that_no_pass_gives_is_refused(what, whole: bytes) -> None:
    assert refused(with_description(whole, WRONG_WORDS[what]))


@cases("what", WRONG_HEADERS)
def test_a_header_that_lies_is_refused(what, whole: bytes) -> None:
    assert refused(with_header(whole, WRONG_HEADERS[what]))


@cases("what", WRONG_NUMBERS)
def test_arrays_that_no_pass_leaves_are_refused(what, whole: bytes) -> None:
    assert refused(with_arrays(whole, WRONG_NUMBERS[what]))


def test_what_surrounds_these_changes_makes_no_file_unreadable(whole: bytes) -> None:
    """So that it is the change that is refused."""
    for kept in (
        with_description(whole, lambda said: None),
        with_header(whole, lambda header: None),
        with_arrays(whole, lambda arrays: None),
        with_arrays(
            whole,
            lambda arrays: arrays.update(
                {BIAS: np.full((1, 1, len(arrays["logits"])), -np.inf, np.float32)}
            ),
        ),
    ):
        assert len(read_trace(kept).attention) == 2


def test_more_parts_than_any_model_has_are_refused(whole: bytes) -> None:
    many = with_description(whole, lambda said: said.update(norms=[said["norms"][0]] * 10_001))
    with pytest.raises(ValueError, match="“norms” is not so: Tuple should have at most 10000"):
        read_trace(many)


def test_tokens_that_no_attention_reads_are_refused(whole: bytes) -> None:
    """Attention of somebody's own module may read others than the text, but some of it reads the text."""
    bare = replace(read_trace(whole), norms=(), residual={}, summands={}, feed_forward=())
    place = replace(bare.attention[0].place, module="blocks.0")
    alone = (replace(bare.attention[0], place=place),)
    own = replace(bare, attention=alone, prediction=None, vocabulary=None, config=None)
    assert len(read_trace(trace_file(own)).attention) == 1
    assert refused(trace_file(replace(own, tokens=own.tokens * 1_000)))


def test_an_array_of_many_names_is_looked_at_once(
    whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def counted(array: Any, numbers: Any) -> bool:
        looked.append(numbers)
        return holds(array, numbers)

    monkeypatch.setattr("model.trace.trace_file.holds", counted)
    trace = read_trace(whole)
    once = len(looked)
    states = (trace.residual["decoder"][0],) * 1_000
    many = trace_file(replace(trace, residual={"decoder": states}))
    looked.clear()
    assert len(read_trace(many).residual["decoder"]) == 1_000
    assert len(looked) <= once + 10


def test_truth_that_is_neither_true_nor_false_is_refused(whole: bytes) -> None:
    def masked(arrays: dict[str, Any]) -> None:
        tokens = len(arrays["logits"])
        arrays["attention/decoder.0.self/mask"] = np.ones((tokens, tokens), bool)

    file = bytearray(with_arrays(whole, masked))
    header, rest = parts(bytes(file))
    at = len(file) - len(rest) + header["attention/decoder.0.self/mask"]["data_offsets"][0]
    file[at] = 2
    assert refused(bytes(file))


@cases("header", [
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1),
    b'{"__metadata__": {"trace": "{}"}, "__metadata__": {"trace": "{}"}}',
    b'{"__metadata__": {"trace": "{\\"text\\": NaN}"}}',
    b'{"__metadata__": {"trace": "{\\"version\\": 1, \\"version\\": 1}"}}',
    b'{"a": ' + b"9" * 100_000 + b"}",
    b"\xff\xfe{}",
    b"{}",
    b"null",
])  # fmt: skip
def test_json_that_is_more_than_names_is_refused(header) -> None:
    assert refused(joined(header, b""))


def test_a_text_without_an_end_is_read_once() -> None:
    """Read again from each of its quotes, it would take the square of its length, and its brackets count."""
    for inside in ('\\"[' * (DEEPEST + 1), '\\"' * (MOST_HEADER // 2)):
        with pytest.raises(ValueError, match="is not JSON"):
            strict_json('"' + inside)


def test_a_description_that_takes_long_to_read_is_refused_before_and_never_written(
    whole: bytes,
) -> None:
    """14 MB of cut edges took nine seconds."""
    edges = [[query, key] for query in range(700) for key in range(700)]
    many = with_description(whole, lambda said: said["intervention"].update(blocked=edges))
    assert MOST_HEADER < len(many) - len(whole) < 2 * MOST_HEADER
    with pytest.raises(ValueError, match="than a header may be"):
        read_trace(many)
    trace = read_trace(whole)
    changed = replace(trace.intervention, blocked=frozenset(map(tuple, edges)))
    with pytest.raises(ValueError, match=r"description of this run has .* at most 4\.0 MB"):
        trace_file(replace(trace, intervention=changed))


def test_the_longest_text_has_room_in_a_header() -> None:
    tokens = [
        {
            "id": 50_256,
            "text": "\U0001f98a",
            "raw": "f09fa68a",
            "special": False,
            "span": [19_998, 19_999],
        }
    ]
    written = json.dumps(json.dumps(tokens * 20_000, separators=(",", ":"))).encode()
    assert 1.1 * len(written) < MOST_HEADER


def test_a_header_longer_than_the_file_takes_no_memory() -> None:
    assert refused((2**62).to_bytes(8, "little") + b"{}")
    assert refused(b"\xff" * 8)


def test_a_file_beyond_the_bound_is_not_read(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.safetensors"
    path.write_bytes(whole)
    assert load_trace(path).text
    with pytest.raises(ValueError, match=r"at most 0\.0 kB are read here"):
        load_trace(path, most_bytes=10)
    with path.open("r+b") as file:
        file.truncate(2_000_000)  # zeros, of which the disk keeps none
    monkeypatch.setenv("ATTENTION_TRACE_MB", "1")
    with pytest.raises(ValueError, match="ATTENTION_TRACE_MB"):
        load_trace(path)


def test_values_that_would_be_repeated_beyond_the_bound_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One query of 64 heads that share 2,000 values: half a megabyte in the file, and 33 when it is read."""
    query, key = np.ones((64, 1, 1), np.float32), np.ones((1, 2_000, 1), np.float32)
    value = np.ones((1, 2_000, 64), np.float32)
    file = trace_file(Trace.from_arrays(query=query, key=key, value=value))
    assert len(file) < 800_000
    assert read_trace(file).attention[0].value.nbytes == 4 * 64 * 2_000 * 64
    dump = {
        f"layers.0.{name}": one.swapaxes(0, 1)
        for name, one in zip("qkv", (query, key, value), strict=True)
    }
    assert read(dump).attention[0].value.nbytes == 4 * 64 * 2_000 * 64
    monkeypatch.setenv("ATTENTION_TRACE_MB", "30")
    for reads in (lambda: read_trace(file), lambda: read(dump)):
        with pytest.raises(ValueError, match="64 heads"):
            reads()


def test_only_ordinary_files_are_opened(whole: bytes, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    leads_away = tmp_path / "link.safetensors"
    leads_away.symlink_to("/dev/zero")
    for path in (pipe, leads_away, tmp_path, tmp_path / "absent.safetensors", Path("\0")):
        with pytest.raises(ValueError, match=r"ordinary|no file|cannot be read|null"):
            load_trace(path)
