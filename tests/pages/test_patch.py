"""The map of patches: what is put in, what it says, what it refuses."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Intervention
from model.analysis import patch_map
from model.nn.patches import Patch
from tests.cases import cases
from tests.pages.laboratory import assert_sound, intervention
from tests.pages.reading import control, named, said, visit
from viz.state.engine import engine
from viz.state.link import to_link
from viz.state.presets import PATCH, PATCH_KIND, PATCHES, SURNAME
from viz.views.experiments.patch import KINDS

pytestmark = pytest.mark.slow

A, B = PATCHES[0].view.text, PATCHES[0].view.second_text


def linked(parameters: dict[str, str]) -> AppTest:
    return visit("experiments", **{"show": PATCH} | parameters)


def opened(kind: str = "Heads", **parameters: str) -> AppTest:
    view = {"model": "stories", "text": A, "second_text": B, "show": PATCH, PATCH_KIND: kind}
    return visit("experiments", **view | parameters)


def drawn(app: AppTest) -> np.ndarray:
    """The numbers of the map."""
    pictures = [json.loads(one.proto.spec)["data"] for one in app.get("plotly_chart")]
    (words,) = [one["text"] for data in pictures for one in data if one.get("name") == "heads"]
    return np.array([float(word.split("<br>")[1].replace("−", "-")) for word in words])


@cases("kind", KINDS)
def test_every_map_is_drawn_with_the_numbers_of_its_runs(kind) -> None:
    app = opened(kind)
    assert_sound(app)
    assert app.get("plotly_chart")
    assert "the answer farthest" in said(app)
    assert "Correlation with the" not in said(app)
    if kind in ("Heads", "Residual stream"):
        model = engine().model("stories", lambda *news: None)
        a, b = model.trace(A), model.trace(B)
        answer = tuple(int(one.prediction.after(-1).argmax()) for one in (a, b))
        what = "head" if kind == "Heads" else "stream"
        expected = patch_map(model, a, b, what, answer=answer)  # type: ignore[arg-type]
        np.testing.assert_allclose(drawn(app), expected.ravel(), atol=1e-3)
    if kind != "Path to the chosen head":
        control(app, "Map").set_value("Estimate").run()
        assert "Correlation with the" in said(app)


@cases("model, text, other", [
    ("house-gpt", SURNAME, "Tom Reed saw a red ball. Anna gave the ball to Tom"),
    ("stories", "Tom Hill saw Anna. Tom", "Tom Smith saw Anna. Tom"),
    ("house-gpt", "qqq zzz", "zzz qqq"),
])  # fmt: skip
def test_sentence_b_begins_as_sentence_a_with_one_word_exchanged(model, text, other) -> None:
    app = linked({"model": model, "text": text, "show": PATCH})
    assert_sound(app)
    assert named(app.text_input, "experiment-patch-text").value == other


@cases("preset", PATCHES)
def test_an_example_opens_its_map_and_its_link_opens_it_again(preset) -> None:
    app = opened()
    named(app.selectbox, "experiment-pairs").set_value(preset).run()
    assert_sound(app)
    assert intervention(app) == preset.view.intervention
    assert app.selectbox(key=PATCH_KIND).value == preset.put_in
    assert preset.look_for[:30] in said(app)
    again = linked(to_link(preset.view))
    assert intervention(again) == preset.view.intervention
    assert any(preset.view.second_text[:20] in button.label for button in again.button)


def test_what_was_put_in_is_taken_back_alone() -> None:
    patch = Patch(
        "stories", B, frozenset({("head", "decoder.0.self", 1), ("weights", "decoder.1.self", 2)})
    )
    app = linked({"model": "stories", "text": A} | to_link_of(patch))
    (one,) = [button for button in app.button if button.label.startswith("weights of L1H2 from")]
    one.click().run()
    assert intervention(app).patch == Patch(
        "stories", B, frozenset({("head", "decoder.0.self", 1)})
    )
    (last,) = [button for button in app.button if button.label.startswith("L0H1 from")]
    last.click().run()
    assert intervention(app) == Intervention()


def to_link_of(patch: Patch) -> dict[str, str]:
    return {
        "patch": to_link(PATCHES[0].view.__class__(intervention=Intervention(patch=patch)))["patch"]
    }


def test_what_cannot_be_laid_over_each_other_is_said_and_the_page_stays() -> None:
    app = opened(second_text="Tom Hill")
    assert_sound(app)
    assert "the other 2" in said(app)
    app = opened(second_text=A)
    assert_sound(app)
    assert "are the same" in said(app)
    app = opened(
        second_text="Anna Hill met Tom King near the ball. Tom", text=A.replace("met", "saw")
    )
    assert_sound(app)
    app = opened(second_text="Tom Hill met Sam King near the river. Tom")
    assert_sound(app)
    assert "sentences lead to" in said(app)
    app = opened("Path to the chosen head", place="decoder.0.self")
    assert_sound(app)
    assert "before L0" in said(app)


def test_a_patch_of_another_length_or_model_is_left_out_and_said() -> None:
    short = Patch("stories", "Tom Hill", frozenset({("head", "decoder.0.self", 1)}))
    app = linked({"model": "stories", "text": A} | to_link_of(short))
    assert intervention(app) == Intervention()
    assert "were left out" in " ".join(one.value for one in app.info)
    other = Patch("house-gpt", B, frozenset({("head", "decoder.0.self", 1)}))
    app = linked({"model": "stories", "text": A} | to_link_of(other))
    assert intervention(app) == Intervention()


def test_an_encoder_and_a_translator() -> None:
    app = linked({"model": "minilm", "text": "a cat", "show": PATCH})
    assert_sound(app)
    assert "no next token" in said(app)
    text, other = "the black cat sees the white dog", "the white cat sees the black dog"
    app = linked({"model": "translate-en-fr", "text": text, "second_text": other, "show": PATCH})
    assert_sound(app)
