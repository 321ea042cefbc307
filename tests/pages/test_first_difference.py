"""The view of the first difference: a copy with a fault, and files of other programs."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from model.exchange import write
from tests.pages.reading import choose, control, own, said, tables, visit
from viz.views.all_heads.first_difference import FILE, HOW

TEXT = "Tom Hill saw a red ball"


def opened(**given: str) -> AppTest:
    return visit(
        "all_heads", **{"model": "house-gpt", "text": TEXT, "show": "First difference"} | given
    )


def test_each_copy_parts_where_its_fault_is() -> None:
    app = opened(place="decoder.1.self", head="3")
    found = {}
    for copy in [one for one in control(app, "Compared with").options if one != FILE]:
        choose(app, "Compared with", control(app, "Compared with").options.index(copy))
        found[copy] = said(app)
        assert not app.error
    parts = {
        "a copy: not scaled": "scaled scores** of L0H0",
        "a copy: √d_model": "√d_model instead of √d_k",
        "a copy: no mask": "Cause: **it has no mask**",
        "a copy: no positions": "it adds no positions",
        "a copy: no L1H3": "outputs** of L1H3",
    }
    assert {*found} == {*parts}
    for copy, words in parts.items():
        assert words in found[copy], copy


def test_a_file_of_the_same_run_has_no_difference(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for format in ["transformer_lens", "nnsight", "huggingface", "vllm", "trace"]:
        with subtests.test(format=format):
            tmp_path = tmp_path_factory.mktemp("case")
            trace = own("house-gpt").trace(TEXT)
            write(trace, file := tmp_path / "run.safetensors", format)
            app = opened()
            choose(app, "Compared with", len(control(app, "Compared with").options) - 1)
            assert HOW in said(app)
            app.get("file_uploader")[-1].upload("run.safetensors", file.read_bytes(), "").run()
            assert not app.exception
            assert len(app.success) == (format == "trace")
            assert ("Not compared" in said(app)) == (format != "trace")
            assert {*tables(app)[0]["differs"]} == {"by rounding"}


def test_a_file_of_another_text_or_of_nothing_gets_a_sentence(tmp_path: Path) -> None:
    write(own("house-gpt").trace("Tom Hill"), file := tmp_path / "run.npz", "transformer_lens")
    for content, sentence in {
        file.read_bytes(): "6 queries and 6 keys",
        b"hello": "run.npz",
    }.items():
        app = opened()
        choose(app, "Compared with", len(control(app, "Compared with").options) - 1)
        app.get("file_uploader")[-1].upload("run.npz", content, "").run()
        assert not app.exception
        assert not app.error
        assert sentence in said(app)


def test_visitors_who_may_drop_no_file_are_offered_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_TRACE_FILES", "off")
    assert FILE not in control(opened(), "Compared with").options
