"""Where two runs part: the changed run and the unchanged one, and files of other programs."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from model.exchange import write
from tests.cases import cases
from tests.pages.reading import own, said, tables, visit
from viz.views.all_heads.first_difference import HOW

TEXT = "Tom Hill saw a red ball"


def opened(**given: str) -> AppTest:
    return visit("home", **{"model": "house-gpt", "text": TEXT, "show": "Changed"} | given)


def test_a_changed_run_parts_where_its_change_is(subtests: pytest.Subtests) -> None:
    model = own("house-gpt")
    for link, words in (
        ({"scale": "1"}, "scaled scores** of L0H0"),
        ({"scale": repr(model.config.d_model**-0.5)}, "√d_model instead of √d_k"),
        ({"mask": "none"}, "Cause: **it has no mask**"),
        ({"positions": "0"}, "it adds no positions"),
        ({"ablated": "decoder.1.self:3"}, "outputs** of L1H3"),
    ):
        with subtests.test(link=link):
            app = opened(**link)
            assert not app.error
            assert words in said(app)


@cases("format", ["transformer_lens", "nnsight", "huggingface", "vllm", "trace"])
def test_a_file_of_the_same_run_has_no_difference(format, tmp_path: Path) -> None:
    trace = own("house-gpt").trace(TEXT)
    write(trace, file := tmp_path / "run.safetensors", format)
    app = opened()
    assert HOW in said(app)
    app.get("file_uploader")[-1].upload("run.safetensors", file.read_bytes(), "").run()
    assert not app.exception
    assert "differs beyond rounding" in said(app)
    assert ("Not compared" in said(app)) == (format != "trace")
    assert {*tables(app)[0]["differs"]} == {"by rounding"}


def test_a_file_of_another_text_or_of_nothing_gets_a_sentence(tmp_path: Path) -> None:
    write(own("house-gpt").trace("Tom Hill"), file := tmp_path / "run.npz", "transformer_lens")
    for content, sentence in {
        file.read_bytes(): "6 queries and 6 keys",
        b"hello": "run.npz",
    }.items():
        app = opened()
        app.get("file_uploader")[-1].upload("run.npz", content, "").run()
        assert not app.exception
        assert not app.error
        assert sentence in said(app)


def test_visitors_who_may_drop_no_file_are_offered_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_TRACE_FILES", "off")
    assert not opened().get("file_uploader")
    assert "Compare with" not in said(visit("home", show="More changes"))
