"""A trace file opens like a model: views that need no weights show its numbers, the others say what is
missing."""

from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path, PurePath

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Trace, load_model, load_trace
from model.run.recorded import RecordedModel
from model.trace.unproven import RECORDED, WORDS, NoWeightsError
from model.trace.uploaded import FORGOTTEN
from tests.pages.reading import said, tables, visit, walk
from viz.shell.model_picker import SAID, TYPED
from viz.state.engine import engine
from viz.state.navigation import PAGES

TEXTS = {
    "house-gpt": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "translate-en-fr": "the black cat sleeps",
    "minilm": "The cat sat on the mat",
}
BROKEN = "This part of the page failed"
SHOWN = {  # views that need no weights
    "house-gpt": {
        "tokens": ("Tokens", "Two tokenizers"),
        "positions": ("Added to the tokens",),
        "all_heads": ("Maps", "Pattern", "Word to word"),
        "head": ("",),
        "compare": ("Averages",),
        "layer_norm": ("",),
        "feed_forward": ("Neurons", "On the curve"),
        "prediction": ("",),  # the only one of its views
        "shapes_and_cost": ("",),
    },
    "translate-en-fr": {
        "encoder_decoder": ("Alignment", "Three attentions"),
        "prediction": ("The next token",),
    },
    "minilm": {"all_heads": ("Maps", "Pattern"), "tokens": ("Tokens",)},
}  # fmt: skip
NEEDS_WEIGHTS = {
    "vectors": ("Look-up",),
    "home": ("Why?",),
    "stream": ("Layer by layer",),
    "model_as_code": ("",),
}


@cache
def run(name: str) -> Trace:
    return load_model(name).trace(TEXTS[name], record="full")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trace file of each model."""
    folder = tmp_path_factory.mktemp("recorded")
    for name in TEXTS:
        run(name).save(folder / f"{name}.safetensors")
    return {name: folder / f"{name}.safetensors" for name in TEXTS}


def opened(page: str, file: Path, **view: str) -> AppTest:
    return visit(page, model=str(file), **view)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page.file for page in PAGES if page.reads])
def test_every_view_of_a_run_works_or_says_what_is_missing(
    page: str, files: dict[str, Path]
) -> None:
    name, views = PurePath(page).stem, list[str]()
    whole, needy = SHOWN["house-gpt"].get(name, ()), NEEDS_WEIGHTS.get(name, ())
    for view, app in walk(opened(page, files["house-gpt"])):
        assert_shown(app, "house-gpt", whole=view in whole)
        if view in needy:
            assert any(RECORDED in info.value.replace("\\", "") for info in app.info), view
        views.append(view)
    assert {*whole, *needy} <= {*views}


@pytest.mark.parametrize("name", ["translate-en-fr", "minilm"])
def test_a_view_of_another_model_that_needs_no_weights_is_drawn(
    name: str, files: dict[str, Path]
) -> None:
    for page, views in SHOWN[name].items():
        for view in views:
            assert_shown(opened(page, files[name], show=view), name, whole=True)


def assert_shown(app: AppTest, name: str, *, whole: bool) -> None:
    """whole: no part of the view needs weights."""
    words, view = said(app), app.query_params.get("show")
    assert BROKEN not in words, view
    assert not app.error, view
    if whole:
        assert words.count(RECORDED) == 1, view  # of the page, as a reason of no part
        assert f"The model is {name}" in words.replace("**", ""), view


def test_the_numbers_are_those_of_the_live_model(files: dict[str, Path]) -> None:
    name = "house-gpt"
    view = {"text": TEXTS[name], "show": "The next token"}
    live, recorded = (visit("prediction", model=one, **view) for one in (name, str(files[name])))
    for ours, theirs in zip(tables(live), tables(recorded), strict=True):
        assert ours.equals(theirs)
    for page, show in (("compare", "Averages"), ("layer_norm", "This norm")):
        view = {"text": TEXTS[name], "show": show}
        ours, theirs = (visit(page, model=one, **view) for one in (name, str(files[name])))
        pictures = [[one.proto.spec for one in app.get("plotly_chart")] for app in (ours, theirs)]
        assert pictures[0]
        assert pictures[0] == pictures[1]


def test_the_box_has_the_recorded_text_and_takes_no_other(files: dict[str, Path]) -> None:
    app = opened(
        "home", files["house-gpt"], text="another text", scale="1.0", ablated="decoder.0.self:1"
    )
    (box,) = [box for box in app.text_area if box.label == "Your sentence"]
    assert (box.value, box.disabled) == (TEXTS["house-gpt"], True)
    assert not [
        one for one in app.toggle if "Divide" in one.label
    ]  # nothing offers to change the run
    assert not app.error


def test_the_map_is_drawn_from_the_file(files: dict[str, Path]) -> None:
    maps = [
        next(one.value for one in app.get("html") if "The parts of the model" in one.value)
        for app in (
            visit("layer_norm", model="house-gpt"),
            opened("layer_norm", files["house-gpt"]),
        )
    ]
    kinds = [[part.split('"')[0] for part in one.split('data-kind="')[1:]] for one in maps]
    assert kinds[0] == kinds[1]


def test_outputs_that_are_not_those_of_the_files_own_vectors_are_told(
    files: dict[str, Path], tmp_path: Path
) -> None:
    trace = run("house-gpt")
    assert not opened("home", files["house-gpt"]).warning
    first, *others = trace.attention
    wrong = replace(first, output=first.output + np.float32(1))
    replace(trace, attention=(wrong, *others)).save(tmp_path / "wrong.safetensors")
    assert len(opened("home", tmp_path / "wrong.safetensors").warning) == 1


def test_a_run_of_which_attention_alone_was_recorded_opens(tmp_path: Path) -> None:
    """Such as one that was captured from somebody's own module."""
    why = "It was captured from a module: only attention was recorded."
    trace = run("house-gpt")
    alone = replace(
        trace, norms=(), residual={}, summands={}, angles=None, feed_forward=(), prediction=None,
        config=None, vocabulary=None, unproven=dict.fromkeys(WORDS, why),
    )  # fmt: skip
    alone.save(tmp_path / "alone.safetensors")
    for page in ("home", "all_heads", "tokens", "vectors"):
        app = opened(page, tmp_path / "alone.safetensors")
        assert BROKEN not in said(app)
        assert not app.error
    words = tuple(replace(token, span=None) for token in alone.tokens)
    replace(alone, text="", tokens=words).save(tmp_path / "alone.safetensors")  # as from a module
    assert BROKEN not in said(opened("tokens", tmp_path / "alone.safetensors"))
    for page in (
        "layer_norm",
        "feed_forward",
        "stream",
        "positions",
        "prediction",
        "shapes_and_cost",
    ):
        app = opened(page, tmp_path / "alone.safetensors")
        assert BROKEN not in said(app)
        assert why in said(app)


def test_a_hostile_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "hostile.safetensors"
    path.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    app = opened("home", path)
    assert len(app.error) == 1
    assert BROKEN not in said(app)


def test_where_no_folder_may_be_opened_no_file_is_either(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_FOLDERS", "off")
    app = opened("home", files["house-gpt"])
    assert any("model" in one.value for one in app.warning)
    assert RECORDED not in said(app)


def test_a_file_that_another_session_dropped_is_not_read_by_its_name(
    files: dict[str, Path],
) -> None:
    content = files["house-gpt"].read_bytes()
    name = engine().keep_file(BytesIO(content), len(content))
    assert engine().has(name)
    app = visit("home", model=name)
    assert FORGOTTEN in said(app)
    assert TEXTS["house-gpt"] not in said(app)
    app = AppTest.from_file(str(Path("pages/home.py").resolve()), default_timeout=120)
    app.query_params["model"] = name
    app.session_state["dropped-files"] = {name: "mine.safetensors"}
    app.run()
    assert "mine.safetensors" in said(app)
    assert not app.error


def test_the_model_that_a_file_names_is_not_opened_in_place_of_its_run(tmp_path: Path) -> None:
    path = tmp_path / "named.safetensors"
    for name in ("nobody/nothing", "stories"):
        replace(run("house-gpt"), model=name).save(path)
        app = opened("compare", path)
        assert "the same run" in said(app)
        assert not app.warning
        app = opened("compare", path, second_text="another text")
        assert said(app).count(RECORDED) == 2  # of the page, and as a reason
    app = opened("compare", path, show="Two models", second_model="house-gpt")
    assert "of House GPT" in said(app)  # chosen by its name, as beside any other


def test_an_unknown_file_may_be_opened_in_both_places_of_a_page() -> None:
    app = AppTest.from_file(str(Path("pages/home.py").resolve()), default_timeout=120)
    app.query_params["model"] = f"trace:{'0' * 64}"
    app.session_state[TYPED] = "stories"  # so that "Other models" is drawn
    app.run()
    assert not app.exception
    assert BROKEN not in said(app)
    assert [one.proto.label for one in app.get("file_uploader")] == ["Open a trace file"] * 2


def test_nobody_learns_from_the_box_of_other_models_what_another_session_dropped(
    files: dict[str, Path],
) -> None:
    content = files["minilm"].read_bytes()
    name = engine().keep_file(BytesIO(content), len(content))
    app = AppTest.from_file(str(Path("pages/home.py").resolve()), default_timeout=120)
    app.session_state[TYPED] = "stories"
    app.run()
    app.text_input(TYPED).set_value(name)
    app.button("picker-open").click().run()
    assert app.session_state[SAID] == FORGOTTEN
    assert not [one for one in app.button if one.key == "picker-open"]
    assert "On this computer" not in said(app)


def test_a_recorded_run_makes_no_other_one(files: dict[str, Path]) -> None:
    model = RecordedModel("x", load_trace(files["house-gpt"]))
    assert model.trace(TEXTS["house-gpt"]).check() == run("house-gpt").check()
    for asked in (
        lambda: model.trace("another"),
        lambda: model.trace(TEXTS["house-gpt"], "target"),
        lambda: model.trace(TEXTS["house-gpt"], continued=(3,)),
        lambda: model.generate(TEXTS["house-gpt"]),
        lambda: model.embedding,
        lambda: model.module.state_dict(),
        lambda: model.head_output(model.run.attention[0], 0),
    ):
        with pytest.raises(ValueError, match="it has no weights") as refusal:
            asked()
        assert isinstance(refusal.value, ValueError | NoWeightsError)
