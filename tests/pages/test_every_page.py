"""Every page runs by itself, with every model, whatever is typed."""

from pathlib import Path

import pytest

from model.loading.registry import models
from model.trace.trace import Logits
from tests.pages.reading import visit
from viz.state.examples import EXAMPLES
from viz.state.menu import PAGES, entry

FILES = [page.file for page in PAGES]
TRANSLATOR = "pages/encoder_decoder.py"  # shows each row of a model that reads 32 tokens at most
HOSTILE = ["", "long words " * 700]  # tests/hostile opens every page on tokens that are attacks


@pytest.mark.parametrize("model", sorted(models))
@pytest.mark.parametrize("file", FILES)
def test_a_page_runs_by_itself(file: str, model: str) -> None:
    sample = next(example for example in EXAMPLES if example.view.model == model)
    app = visit(file, model=model, text=sample.view.text)
    assert not app.exception
    assert not app.error
    assert app.title[0].value == (entry(file).heading or entry(file).title)


@pytest.mark.parametrize("file", FILES)
def test_a_page_runs_where_only_the_shipped_models_may_be_opened(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_OTHER_MODELS", "off")
    monkeypatch.setenv("ATTENTION_FETCH", "none")
    app = visit(file, model="stories", text="Tom saw a red ball.")
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("file", FILES)
def test_no_text_breaks_a_page_and_what_was_typed_stays(file: str, text: str) -> None:
    # That page lends its own sentence to visitors of other models; theirs is kept for other pages.
    model = "translate-en-fr" if file == TRANSLATOR else "stories"
    app = visit(file, text=text, model=model)
    assert not app.exception
    boxes = [box for box in app.text_area if box.label == "Your sentence"]
    assert all(box.value == text for box in boxes)


@pytest.mark.parametrize("file", [file for file in FILES if file != TRANSLATOR])
def test_no_page_makes_all_logits_before_its_first_picture(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_logits(late: Logits) -> None:
        raise AssertionError(f"{late.shape} are made")

    monkeypatch.setattr("model.run.model.DEFER_FROM", 0)
    monkeypatch.setattr(Logits, "all", property(all_logits))
    text = f"Tom Hill saw a red ball. Anna gave the ball to {Path(file).stem}"  # passes of its own
    app = visit(file, model="stories", text=text, mask="none")
    assert not app.exception


@pytest.mark.parametrize("file", FILES)
def test_a_malformed_link_is_named_in_a_sentence(file: str) -> None:
    app = visit(file, head="many", mask="all", model="no such model", place="nowhere.9")
    assert not app.exception
    said = " ".join(warning.value for warning in app.warning)
    assert all(name in said for name in ("head", "mask", "model"))
