"""Attention in the layouts of other programs: read as they document them, written and read again; what lacks
is named, what does not fit together is told, and a file that lies gets a sentence."""

import errno
import io
import json
import pickle
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from model import Trace
from model.analysis import first_difference
from model.exchange import ENDINGS, FORMATS, read, write
from model.exchange.formats import FormatName
from model.exchange.layers import _NO_MASK, _NO_VECTORS
from model.trace.partial import NotRecordedError, PartialAttention
from model.trace.trace_file import trace_file
from model.trace.unproven import NotShownError
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, run

ONE_STACK = ("gpt", "llama", "bert", "gpt-post")
LOOKING_BACK = ("gpt", "llama", "gpt-post")
NAMED: tuple[FormatName, ...] = ("transformer_lens", "nnsight", "huggingface", "vllm")


def transformer_lens_cache(trace: Trace) -> dict[str, torch.Tensor]:
    """A cache as `HookedTransformer.run_with_cache` gives it, made of a run by the documented names and axes:
    vectors (batch, pos, head_index, d_head), scores divided by attn_scale and masked by minus infinity."""
    cache: dict[str, np.ndarray] = {}
    states = trace.residual["decoder"]
    cache["hook_embed"] = trace.embeddings
    for layer, one in enumerate(trace.attention):
        block = f"blocks.{layer}"
        cache[f"{block}.hook_resid_pre"] = states[2 * layer]
        cache[f"{block}.hook_resid_mid"] = states[2 * layer + 1]
        cache[f"{block}.hook_resid_post"] = states[2 * layer + 2]
        for hook, vectors in zip("qkv", one.vectors, strict=True):
            cache[f"{block}.attn.hook_{hook}"] = vectors.transpose(1, 0, 2)
        if one.projection.turned:  # those from before the positions are added
            for hook in "qk":
                cache[f"{block}.attn.hook_rot_{hook}"] = cache[f"{block}.attn.hook_{hook}"]
                cache[f"{block}.attn.hook_{hook}"] = cache[f"{block}.attn.hook_{hook}"][::-1]
        scores = [
            one.query[head] @ one.key[head].T / one.query.shape[2] ** 0.5
            for head in range(one.heads)
        ]
        masked = np.where(np.tri(*one.sizes[1:], dtype=bool), np.stack(scores), -np.inf)
        cache[f"{block}.attn.hook_attn_scores"] = masked.astype(np.float32)
        cache[f"{block}.attn.hook_pattern"] = np.stack(
            [one.weights(head) for head in range(one.heads)]
        )
        cache[f"{block}.attn.hook_z"] = one.output.transpose(1, 0, 2)
    return {name: torch.tensor(array.copy())[None] for name, array in cache.items()}


def parted_at(trace: Trace, other: Trace) -> str | None:
    """The first stage that differs, among those that both runs have."""
    parting = first_difference(trace, other)
    return None if parting is None else parting.stage


@cases("name", ["gpt", "llama"])
def test_a_cache_of_transformer_lens_is_the_same_run(name) -> None:
    trace = run(loaded(name))
    other = read(transformer_lens_cache(trace), tokens=[token.text for token in trace.tokens])
    assert [token.text for token in other.tokens] == [token.text for token in trace.tokens]
    for ours, theirs in zip(trace.attention, other.attention, strict=True):
        assert not isinstance(theirs, PartialAttention)
        assert (theirs.name, theirs.kind, theirs.scale) == (
            ours.name,
            ours.kind,
            pytest.approx(ours.scale),
        )
        assert theirs.doubt == ""
        np.testing.assert_array_equal(theirs.query, ours.query)
        np.testing.assert_array_equal(theirs.output, ours.output)
        np.testing.assert_allclose(theirs.weights(), ours.weights(), atol=1e-6)
    np.testing.assert_array_equal(other.streams["decoder"], trace.streams["decoder"])
    assert other.check() < 1e-4
    parting = first_difference(trace, other)
    assert parting.stage is None  # of the end of the run the cache says nothing
    assert {"norm", "logits"} <= {*parting.not_compared}
    with pytest.raises(
        NotShownError, match="It was read from a cache of TransformerLens, which does not keep"
    ):
        _ = other.norms[0]


def test_a_cache_object_and_another_text_of_the_batch_are_read() -> None:
    cache = transformer_lens_cache(run(loaded("gpt")))
    both = {
        name: torch.cat([array * 2, array])
        for name, array in cache.items()
        if ".attn.hook_z" not in name
    }
    trace = read(SimpleNamespace(cache_dict=both), batch=1)  # type: ignore[arg-type]
    np.testing.assert_array_equal(trace.attention[0].query, run(loaded("gpt")).attention[0].query)
    with pytest.raises(ValueError, match="holds 2 texts, and batch is 2"):
        read(both, batch=2)


def test_the_scale_is_told_by_recorded_scores() -> None:
    cache = transformer_lens_cache(run(loaded("gpt")))
    for name in [one for one in cache if "hook_attn_scores" in one]:
        cache[name] = cache[name] * 3
        cache[name.replace("attn_scores", "pattern")] = cache[name].softmax(-1)
    trace = read(cache)
    assert [one.scale for one in trace.attention] == pytest.approx([3 / 8**0.5] * 2, rel=1e-4)
    found = first_difference(run(loaded("gpt")), trace)
    assert found.stage == "scaled"


def test_queries_that_do_not_give_the_recorded_weights_are_left_out_and_told() -> None:
    cache = transformer_lens_cache(run(loaded("llama")))
    before = {
        name: one for name, one in cache.items() if "rot" not in name
    }  # as without `hook_rot_q`
    attention = read(before).attention[0]
    assert _NO_VECTORS in attention.doubt
    with pytest.raises(NotRecordedError, match=r"The query of blocks\.0\.attn was not recorded"):
        _ = attention.query
    np.testing.assert_array_equal(attention.weights(1), cache["blocks.0.attn.hook_pattern"][0, 1])


def test_what_a_weight_alone_does_not_tell_is_refused_by_name() -> None:
    trace = run(loaded("gpt"))
    other = read(tuple(torch.tensor(one.weights())[None] for one in trace.attention))
    attention = other.attention[1]
    np.testing.assert_array_equal(attention.weights(2), trace.attention[1].weights(2))
    assert attention.kind == "causal"
    assert other.check() == 0
    asked: dict[str, Callable[[], object]] = {
        "query": lambda: attention.query,
        "key": lambda: attention.key,
        "value": lambda: attention.value,
        "output": lambda: attention.output,
    }
    for name, ask in asked.items():
        with pytest.raises(
            NotRecordedError, match=f"The {name} of attentions.1 .* there: weights."
        ):
            ask()
    for derived in (attention.scores, attention.masked, attention.context):
        with pytest.raises(NotRecordedError):
            derived(0)
    with pytest.raises(NotRecordedError):
        trace_file(other)


@cases("ending, format", product(ENDINGS, NAMED))
def test_what_is_written_is_read_again(ending, format, tmp_path: Path) -> None:
    for name in LOOKING_BACK if format == "vllm" else ONE_STACK:
        trace = run(loaded(name))
        write(trace, file := tmp_path / f"{name}{ending}", format)
        again = read(file)
        assert again.model == format
        for ours, theirs in zip(trace.attention, again.attention, strict=True):
            assert theirs.name.endswith(ours.name.partition(".")[2])
            np.testing.assert_allclose(theirs.weights(), ours.weights(), atol=1e-6)
            if format == "huggingface":
                continue
            for vectors, others in zip(ours.vectors, theirs.vectors, strict=True):
                np.testing.assert_array_equal(others, vectors)
        assert parted_at(trace, again) is None


def test_both_stacks_are_kept_by_the_librarys_names_and_refused_by_the_others(
    tmp_path: Path,
) -> None:
    trace = run(loaded("translator"))
    write(trace, file := tmp_path / "both.npz", "huggingface")
    again = read(file)
    assert [one.name for one in again.attention] == [one.name for one in trace.attention]
    assert parted_at(trace, again) is None
    for format in ("transformer_lens", "nnsight", "vllm", "headvis"):
        with pytest.raises(ValueError, match="one stack"):
            write(trace, tmp_path / "x.npz", format)
    with pytest.raises(ValueError, match="keeps no mask"):
        write(run(loaded("bert")), tmp_path / "x.npz", "vllm")


def test_a_step_of_a_serving_engine_reads_keys_of_before() -> None:
    trace = run(loaded("llama"))
    one = trace.attention[0]
    dump = {f"model.layers.0.self_attn.attn.{name}": torch.tensor(vectors).transpose(0, 1)
            for name, vectors in zip("qkv", one.vectors, strict=True)}  # fmt: skip
    dump["model.layers.0.self_attn.attn.q"] = dump["model.layers.0.self_attn.attn.q"][-2:]
    (last,) = read(dump).attention
    assert last.sizes == (one.heads, 2, one.sizes[2])
    np.testing.assert_allclose(last.weights(), one.weights()[:, -2:], atol=1e-6)
    assert _NO_MASK in last.doubt
    with pytest.raises(NotRecordedError, match="output"):
        _ = last.output


def test_half_precision_is_told_and_allowed_for() -> None:
    cache = {
        name: one.bfloat16() for name, one in transformer_lens_cache(run(loaded("gpt"))).items()
    }
    other = read(cache)
    assert other.device == f"{FORMATS['transformer_lens'].title}, in bfloat16"
    assert other.attention[0].doubt == ""
    assert parted_at(run(loaded("gpt")), other) is None


def test_a_folder_of_headvis_comes_back_and_has_what_its_pipeline_writes(tmp_path: Path) -> None:
    trace = hub_models.traced(hub_models.loaded("gpt2"))
    write(trace, tmp_path, "headvis")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["heads"] == [[layer, head] for layer in range(3) for head in range(6)]
    assert {
        "model_name",
        "dataset_name",
        "n_layers",
        "n_heads",
        "metrics",
        "head_data_pattern",
    } <= {*config}
    pipeline = {
        "n_sequences",
        "seq_len",
        "dtype",
        "attn_implementation",
    }  # what Neuronpedia's loader needs
    assert pipeline <= {*config["pipeline_config"]}
    rows = json.loads((tmp_path / "scatter_data.json").read_text())
    assert len(rows) == 18
    weights = trace.attention[1].weights(4)
    (row,) = [one for one in rows if (one["layer"], one["head"]) == (1, 4)]
    assert row["self_attention_score"] == pytest.approx(np.diagonal(weights).mean(), abs=1e-4)
    assert row["prev_token_score"] == pytest.approx(np.diagonal(weights, -1).mean(), abs=1e-4)
    apart = np.abs(np.subtract(*np.indices(weights.shape)))
    assert row["qk_distance"] == pytest.approx((weights * apart).sum() / weights.sum(), abs=1e-3)
    (text,) = json.loads((tmp_path / "heads" / "L1H4.json").read_text())["sequences"]
    query, key = divmod(text["attention_indices"][3], text["seq_len"])
    assert text["attention_values"][3] == pytest.approx(weights[query, key], abs=1e-4)
    again = read(tmp_path)
    assert [token.text for token in again.tokens] == [token.text for token in trace.tokens]
    for ours, theirs in zip(trace.attention, again.attention, strict=True):
        kept = theirs.weights() > 0
        np.testing.assert_allclose(theirs.weights()[kept], ours.weights()[kept], atol=1e-4)
        assert (ours.weights()[~kept] < 0.2).all()
    assert read(tmp_path / "heads" / "L1H4.json").attention[0].heads == 1


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('executed')",))


def archive(content: bytes, times: int = 1) -> bytes:
    """An archive whose directory lists its only array so many times."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("weights.npy", content)
    *before, entry, end = (at.start() for at in re.finditer(b"PK[\1\5][\2\6]", file.getvalue()))
    assert not before
    whole, counts = file.getvalue(), (times % 2**16).to_bytes(2, "little")
    size = (times * (end - entry)).to_bytes(4, "little")
    listed = whole[entry:end] * times
    return whole[:entry] + listed + whole[end : end + 8] + 2 * counts + size + whole[end + 16 :]


def npy(shape: str, content: bytes, kind: str = "<f4") -> bytes:
    """An array as numpy writes it, with a shape of its own."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + content


def head_of(places: str, values: str) -> bytes:
    """A file of HeadVis with a text of one token."""
    text = f'{{"tokens": ["a"], "attention_indices": {places}, "attention_values": {values}}}'
    return f'{{"sequences": [{text}]}}'.encode()


def layers_of_one_place(layers: int, tokens: int) -> bytes:
    """Queries and keys of many layers, all of them the same bytes of the file."""
    size = 4 * tokens * 8
    place = {"dtype": "F32", "shape": [tokens, 1, 8], "data_offsets": [0, size]}
    return tensors(
        {f"layers.{layer}.{name}": place for layer in range(layers) for name in "qkv"}, bytes(size)
    )


def peak_of(run: Callable[[], object]) -> int:
    """The most bytes that a refusal takes."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"\.$"):
            run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def pickled() -> bytes:
    file = io.BytesIO()
    torch.save({"blocks.0.attn.hook_q": Harmful()}, file)
    return file.getvalue()


def object_array() -> bytes:
    file = io.BytesIO()
    np.savez(file, **{"blocks.0.attn.hook_q": np.array([Harmful()], object)})
    return file.getvalue()


def tensors(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


HOSTILE = {
    "empty.npz": b"",
    "none.safetensors": b"",
    "text.pt": b"import os",
    "pickle.pt": pickle.dumps(Harmful()),
    "code.pt": pickled(),
    "objects.npz": object_array(),
    "bomb.npz": archive(bytes(2_000_000)),
    "long.safetensors": (2**40).to_bytes(8, "little") + b"{}",
    "outside.safetensors": tensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}},
        b"123"),
    "negative.safetensors": tensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        b"1234"),
    "kind.safetensors": tensors({"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 4]}},
        b"1234"),
    "list.safetensors": tensors([1, 2]),
    "odd.safetensors": tensors({"a": 3}),
    "name.safetensors": tensors({"." * 5000: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}},
        b"1"),
    "other.txt": b"hello",
    "head.json": head_of("[0]", "[1]"),
    "L0H1.json": head_of("[7]", "[1]"),
    "L0H5.json": b"[" * 100_000,
    "L0H2.json": head_of("[0]", "[1e400]"),
    "L0H3.json": head_of("[0.5]", "[1]"),
    "L0H4.json": head_of("[0]", "[]"),
    "claims.npz": archive(npy("(100000000000,)", b"1234")),
    "axes.npz": archive(npy("(" + "1, " * 60 + ")", b"1234")),
    "code.npz": archive(npy("(1,)", b"1234", kind="|O")),
    "twice.npz": archive(npy("(1,)", b"1234"), times=2),
    "directory.npz": archive(npy("(1,)", b"1234"), times=40_000),
    "remark.npz": archive(npy("(1,)", b"1234")) + b"PK",
    "damaged.npz": archive(npy("(1,)", b"1234")).replace(b"PK\1\2", b"PK\1\3"),
    "bytes.safetensors": tensors({"a": {"dtype": "U8", "shape": [300_000], "data_offsets": [0,
        300_000]}}, bytes(300_000)),
    "gap.safetensors": tensors({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}},
        bytes(2)),
    "control.safetensors": tensors({"a\x1b[2J": {"dtype": "U8", "shape": [1], "data_offsets": [0,
        1]}}, b"1"),
    "L0H6.json": json.dumps({"sequences": [{"tokens": ["a"] * 2000, "attention_indices": [],
        "attention_values": []}]}).encode(),
}  # fmt: skip


@cases("name", HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence(
    name, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTENTION_TRACE_MB", "1")
    file = tmp_path / name
    file.write_bytes(HOSTILE[name])
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        read(file)
    sentence = str(refusal.value)
    assert sentence[0].isupper() or sentence.startswith(name)
    assert sentence.endswith(".")
    assert len(sentence) < 500


def test_a_file_that_names_the_same_bytes_many_times_takes_no_memory(tmp_path: Path) -> None:
    """300 times three arrays of 320 kB would be 288 MB."""
    file = tmp_path / "same.safetensors"
    file.write_bytes(content := layers_of_one_place(300, 10_000))
    assert peak_of(lambda: read(file)) < 5_000_000
    assert peak_of(lambda: read(io.BytesIO(content))) < 5_000_000


def test_sizes_that_only_a_header_claims_take_no_memory(tmp_path: Path) -> None:
    """An archive whose only array says that it has 40 MB of numbers, and one that lists it 40,000 times."""
    for name in (
        "claims.npz",
        "directory.npz",
        "twice.npz",
        "long.safetensors",
        "outside.safetensors",
    ):
        file = tmp_path / name
        file.write_bytes(HOSTILE[name])
        assert peak_of(lambda file=file: read(file)) < 8_000_000  # type: ignore[misc]


def test_masks_that_were_not_in_the_file_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten layers of 1,000 queries and 1,001 keys are 20 kB a layer, and a megabyte of mask."""
    monkeypatch.setenv("ATTENTION_TRACE_MB", "5")
    given = {
        f"layers.{layer}.{name}": np.zeros((1_000 + (name == "k"), 1, 1), np.float32)
        for layer in range(10)
        for name in "qk"
    }
    assert peak_of(lambda: read(given)) < 2_000_000


def test_a_changed_byte_of_a_file_gives_a_run_or_a_sentence(tmp_path: Path) -> None:
    trace = run(loaded("gpt"))
    for ending, name in product(ENDINGS, ("huggingface", "transformer_lens")):
        file = tmp_path / f"whole{ending}"
        write(trace, file, name)
        whole = file.read_bytes()
        packed = io.BytesIO()
        if ending == ".npz":
            with np.load(file) as arrays:
                np.savez_compressed(packed, **arrays)
        for content in filter(None, (whole, packed.getvalue())):
            for at in np.random.default_rng(0).integers(0, len(content), 150):
                changed = bytearray(content)
                changed[at] ^= 1 << int(at) % 8
                given = io.BytesIO(changed)
                given.name = f"changed{ending}"
                with suppress(ValueError):
                    read(given)


def test_a_head_that_a_folder_lists_again_and_again_is_read_once(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    write(hub_models.traced(hub_models.loaded("gpt2")), tmp_path, "headvis")
    config = tmp_path / "config.json"
    said = json.loads(config.read_text())
    for heads in ([[0, 0]] * 20_000, "[[1e400, 0]]", [[0.5, 0]], [[-1, 0]], [], [[0, 0, 0]]):
        with subtests.test(heads=str(heads)[:20]):
            written = json.dumps(said | {"heads": heads}).replace('"[[1e400, 0]]"', "[[1e400, 0]]")
            config.write_text(written)
            with pytest.raises(ValueError, match=r"lists (no heads|a head twice)\.$"):
                read(tmp_path)


def test_what_is_written_for_other_programs_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = run(loaded("gpt"))

    def breaks_off(file: Any, *given: object, **named: object) -> None:
        file.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", breaks_off)
    monkeypatch.setattr("model.exchange.files.array_file.write", breaks_off)
    for ending in ENDINGS:
        file = tmp_path / f"cache{ending}"
        file.write_bytes(b"what was there")
        with pytest.raises(OSError, match="No space left"):
            write(trace, file, "huggingface")
        assert file.read_bytes() == b"what was there"
        file.unlink()
        assert not [*tmp_path.iterdir()]


def test_tensors_that_do_not_fit_are_refused(subtests: pytest.Subtests) -> None:
    for given, sentence in [
        (
            {"blocks.0.hook_resid_pre": torch.zeros(1, 3, 4)},
            "There is no attention under these names",
        ),
        (
            {"blocks.0.attn.hook_q": torch.zeros(1, 3, 2, 4)},
            "neither weights nor both queries and keys",
        ),
        (
            {
                "blocks.0.attn.hook_q": torch.zeros(1, 3, 2, 4),
                "blocks.0.attn.hook_k": torch.zeros(1, 3, 2, 5),
            },
            "differ in d_k",
        ),
        (
            {
                "blocks.0.attn.hook_pattern": torch.zeros(1, 2, 3, 3),
                "blocks.0.attn.hook_v": torch.zeros(1, 4, 2, 5),
            },
            "does not fit 2 heads, 3 queries and 3 keys",
        ),
        ({"blocks.0.attn.hook_pattern": torch.full((1, 2, 3, 3), float("nan"))}, "not finite"),
        ({"attentions": (None, None)}, 'attn_implementation="eager"'),
        ({"attentions": ()}, 'attn_implementation="eager"'),
        ({"attentions": (torch.zeros(3, 3),)}, "must have 3 axes"),
        (
            {"layers.0.q": torch.zeros(99_999, 1, 1), "layers.0.k": torch.zeros(100_000, 1, 1)},
            "too many for a mask",
        ),
        ({"mlp.0": torch.zeros(3)}, "There is no attention under these names: mlp.0"),
    ]:
        with (
            subtests.test(given=given, sentence=sentence),
            pytest.raises(ValueError, match=sentence),
        ):
            read(given)


def test_formats_are_listed_and_others_refused(tmp_path: Path) -> None:
    trace = run(loaded("gpt"))
    assert {*NAMED} == {*FORMATS}
    with pytest.raises(ValueError, match="format is "):
        write(trace, tmp_path / "a.npz", "onnx")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ends with none of"):
        write(trace, tmp_path / "a.txt", "vllm")
    torch.save(transformer_lens_cache(trace), file := tmp_path / "cache.pt")
    with pytest.raises(ValueError, match="is a pickle, which can hold code and is not opened"):
        read(file)
    assert parted_at(trace, read(torch.load(file, weights_only=True))) is None
    with pytest.raises(ValueError, match=r"There is no file missing\.npz"):
        read(tmp_path / "missing.npz")
    with pytest.raises(ValueError, match="tokens names 2 tokens, but attention reads 8"):
        read(transformer_lens_cache(trace), tokens=["a", "b"])
    write(trace, tmp_path / "own.safetensors", "trace")
    assert parted_at(trace, read(tmp_path / "own.safetensors")) is None
