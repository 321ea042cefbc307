"""Traces of plain arrays whose layers differ, or with more keys than queries: made, and from a file."""

from typing import Any

import numpy as np
import pytest

from model import Trace, load_trace
from model.analysis.heads.statistics import families
from viz.explorer.heads import all_heads

LATEST = np.tri(2, 5, 3, dtype=bool)  # two tokens more, after three that were read before


def vectors(*shapes: tuple[int, int]) -> list[np.ndarray]:
    """One layer for each (heads, tokens)."""
    random = np.random.default_rng(0)
    return [random.normal(size=(*shape, 4)).astype(np.float32) for shape in shapes]


def layers(*shapes: tuple[int, int]) -> dict[str, Any]:
    return {name: vectors(*shapes) for name in ("query", "key", "value")}


def test_it_comes_back_from_its_file_and_its_heads_stand_together(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for given, queries, keys in [
        (layers((2, 5)) | {"query": vectors((2, 2)), "mask": LATEST}, ["de"], ["abcde"]),
        (layers((2, 5)) | {"query": vectors((2, 2)), "target_tokens": "xy"}, ["xy"], ["abcde"]),
        (layers((2, 5), (2, 3)), ["abcde", "012"], ["abcde", "012"]),
        (layers((2, 5), (4, 5)), ["abcde"] * 2, ["abcde"] * 2),
    ]:
        with subtests.test(given=given, queries=queries, keys=keys):
            tmp_path = tmp_path_factory.mktemp("case")
            words = {"tokens": [*"abcde"]} | {
                name: [*text] for name, text in given.items() if name == "target_tokens"
            }
            made = Trace.from_arrays(**(given | words))
            made.save(tmp_path / "given.safetensors")
            for trace in (made, load_trace(tmp_path / "given.safetensors")):
                assert [
                    "".join(t.text for t in trace.queries_of(one)) for one in trace.attention
                ] == queries
                assert [
                    "".join(t.text for t in trace.keys_of(one)) for one in trace.attention
                ] == keys
                assert trace.check() < 1e-6
                found = all_heads(trace, mapped=[one.name for one in trace.attention])
                assert [len(one["layers"]) for one in found] == [1] * len(made.attention)  # type: ignore[arg-type]
                assert len({family.title for family in families(trace)}) == len(found)


def test_layers_of_one_size_are_one_family() -> None:
    trace = Trace.from_arrays(**layers((2, 5), (2, 5)))
    assert [family.title for family in families(trace)] == ["Encoder self-attention"]
