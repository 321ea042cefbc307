"""The notes' own models on the pages, and the tab with code that fails."""

import pytest

from model.loading.registry import models, untrained, untrained_models
from tests.pages.reading import control, said, visit
from viz.state.navigation import PAGES
from viz.state.presets import EXAMPLES

READ_TWO = ("paper-base", "distance-buckets")
SAID = "The open model is **untrained**"
SMALL = [name for name in untrained_models if name not in ("notes-gpt-124m", *READ_TWO)]
LENDS = "pages/encoder_decoder.py"
LISTS = ("pages/library.py", "pages/for_a_class.py")  # what there is to see in trained models
SENTENCE = "The cat sat on the mat, and Tom saw it"  # no example of the app


@pytest.mark.slow
@pytest.mark.parametrize(("at", "file"), list(enumerate(page.file for page in PAGES)))
def test_a_page_opens_on_a_class_of_the_notes_and_says_that_it_is_untrained(
    at: int, file: str
) -> None:
    model = "distance-buckets" if file == LENDS else SMALL[at % len(SMALL)]
    target = {"target": "the cat"} if file == LENDS else {}
    app = visit(file, model=model, text=SENTENCE, **target)
    assert not app.error
    assert SAID in said(app)
    if file not in LISTS:
        assert not [example.title for example in EXAMPLES if example.look_for in said(app)]


@pytest.mark.slow
def test_the_page_of_norms_says_that_they_change_nothing_yet() -> None:
    assert "γ = 1 and β = 0 change nothing." in said(
        visit("layer_norm", model="notes-two-layers", text=SENTENCE)
    )
    assert "stretch and shift" in said(visit("layer_norm", model="stories", text=SENTENCE))


def test_a_trained_model_is_not_called_untrained() -> None:
    assert SAID not in said(visit("home", model="stories", text=SENTENCE))


def test_they_stand_apart_from_the_trained_ones_and_open_from_there() -> None:
    app = visit("home", text=SENTENCE)
    assert list(control(app, "Model").options)[: len(models)] == [
        entry.title for entry in models.values()
    ]
    assert not any("Untrained" in title for title in control(app, "Model").options)
    app.session_state["picker-typed"] = " "  # as while the box is open
    app.run()
    apart = control(app, "Untrained: random weights")
    assert len(apart.options) == len(untrained())
    assert any("124M" in one and one.endswith(", 652 MB") for one in apart.options)
    apart.set_value("notes-post-norm").run()
    assert app.query_params["model"] == "notes-post-norm"
    assert control(app, "Model").value == "notes-post-norm"
    assert SAID in said(app)


def test_the_readers_sizes_are_run_and_the_message_is_explained() -> None:
    app = visit("worked_examples", show="Code that fails")
    assert "RuntimeError: " in codes(app)
    assert "(2)" in codes(app)
    assert "What it means" in said(app)
    control(app, "Code").set_value("heads-that-do-not-divide").run()
    assert "RuntimeError: shape '[1, 6, 7, 9]'" in codes(app)
    app.selectbox("failing-heads-that-do-not-divide-heads").set_value(16).run()
    assert "Error" not in codes(app)
    assert "the same numbers" in said(app)
    control(app, "Code").set_value("only-pads").run()
    assert "to_padded_tensor" in codes(app)
    control(app, "Code").set_value("only-pads-in-one-layer").run()
    assert "64 of its 64 numbers" in said(app)
    assert not app.exception


def codes(app: object) -> str:
    return "\n".join(block.value for block in app.code)  # type: ignore[attr-defined]
