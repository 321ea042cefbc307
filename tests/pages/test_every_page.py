"""Every page, whatever is typed and whatever its link says; its views: test_every_view.py."""

from pathlib import Path

import pytest

from model.trace.trace import Logits
from tests.cases import cases
from tests.pages.reading import visit
from viz.state.navigation import PAGES

FILES = [page.file for page in PAGES]
TRANSLATOR = "pages/encoder_decoder.py"  # shows each row of a model that reads 32 tokens at most
TOO_MUCH = ["", "long words " * 700]  # tests/hostile opens every page on tokens that are attacks


@cases("text", TOO_MUCH)
def test_no_text_breaks_a_page_and_what_was_typed_stays(text) -> None:
    for file in FILES:
        # That page lends its own sentence to visitors of other models;
        # theirs is kept for other pages.
        app = visit(file, text=text, model="translate-en-fr" if file == TRANSLATOR else "stories")
        boxes = [box for box in app.text_area if box.label == "Your sentence"]
        assert all(box.value == text for box in boxes), file


def test_where_only_shipped_models_open_no_page_makes_all_logits_before_its_first_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def all_logits(late: Logits) -> None:
        raise AssertionError(f"{late.shape} are made")

    monkeypatch.setenv("ATTENTION_OTHER_MODELS", "off")
    assert not visit(TRANSLATOR, model="stories", text="Tom saw a red ball.").error
    monkeypatch.setattr("model.run.model.DEFER_FROM", 0)
    monkeypatch.setattr(Logits, "all", property(all_logits))
    for file in FILES:
        if file != TRANSLATOR:
            text = f"Tom Hill saw a red ball. Anna saw {Path(file).stem}"  # its own pass
            assert not visit(file, model="stories", text=text, mask="none").error, file


def test_a_malformed_link_is_named_in_a_sentence() -> None:
    for file in FILES:
        app = visit(file, head="many", mask="all", model="no such model", place="nowhere.9")
        said = " ".join(warning.value for warning in app.warning)
        assert all(name in said for name in ("head", "mask", "model")), file
