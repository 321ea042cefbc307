"""A visitor opens a trace file, looks at it again after it was written anew, and goes back to a model."""

from io import BytesIO
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest

from model import load_model, load_trace
from model.loading.registry import RECORDED_RUN
from model.system import deadline
from model.trace.trace import Trace
from model.trace.unproven import RECORDED
from tests.pages.reading import choose, control, said, visit
from viz.shell.keys import _tokens
from viz.shell.model_picker import TYPED
from viz.state.engine import engine

OWN = "Anna gave the ball to Tom"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.safetensors"
    load_model("stories").trace("Tom saw a dog", record="full").save(path)
    return path


def sentence(app: AppTest) -> tuple[str, bool]:
    (box,) = [box for box in app.text_area if box.label == "Your sentence"]
    return box.value, box.disabled


def pictures(app: AppTest) -> list[str]:
    return [one.proto.spec for one in app.get("plotly_chart")]


def test_a_file_that_is_written_anew_shows_its_new_numbers(file: Path) -> None:
    app = visit("all_heads", model=str(file), show="Pattern")
    before = pictures(app)
    assert before
    load_model("stories").trace("Tom saw a cat", record="full").save(file)
    app.run()
    assert sentence(app) == ("Tom saw a cat", True)
    assert pictures(app) != before
    fresh = visit("all_heads", model=str(file), show="Pattern")
    assert pictures(app) == pictures(fresh)
    changed = file.stat().st_mtime_ns
    assert "cat" in " ".join(_tokens(str(file), "Tom saw a cat", changed))


def test_the_page_stands_before_its_file_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stood = []

    def read(path: str, *, most_bytes: int) -> Trace:
        stood.append("frame" in st.session_state)
        return load_trace(path, most_bytes=most_bytes)

    monkeypatch.setattr("model.serving.trace_files.load_trace", read)
    app = visit("home", model=str(file), text=OWN)
    assert stood == [True]  # and it is read once
    assert sentence(app) == ("Tom saw a dog", True)
    assert app.query_params["text"] == "Tom saw a dog"


def test_the_visitors_own_sentence_and_change_come_back_with_a_model(file: Path) -> None:
    app = visit("home", text=OWN, scale="1.0")
    choose(app, "Model", "house-gpt")
    assert sentence(app) == (OWN, False)
    app.query_params["model"] = str(file)
    app.run()
    assert sentence(app) == ("Tom saw a dog", True)
    choose(app, "Model", "house-gpt")
    assert sentence(app) == (OWN, False)
    assert app.session_state["view"].intervention.scale == 1.0


def test_what_was_opened_meanwhile_is_not_replaced_by_the_sentence_before(file: Path) -> None:
    app = visit("home", model=str(file), text=OWN)
    app.query_params["model"], app.query_params["text"] = "stories", "The cat sat"
    app.run()
    assert sentence(app) == ("The cat sat", False)


def test_a_dropped_file_stays_among_the_models_at_hand(file: Path) -> None:
    content = file.read_bytes()
    name = engine().keep_file(BytesIO(content), len(content))
    app = visit("home", model="stories")
    mine = f"{file.name} ({RECORDED_RUN.lower()})"
    assert mine not in control(app, "Model").options
    app.session_state["dropped-files"] = {name: file.name}
    app.run()
    assert mine in control(app, "Model").options


WITHOUT_WEIGHTS = {  # what is shown without weights, and what says that a part needs them
    ("home", "Carries"): ("before W_O", "head's output there"),
    ("all_heads", "First token"): ("of the weight", RECORDED),
    ("stream", "Contributions"): ("adds most", f"here. {RECORDED}"),
}


@pytest.mark.parametrize(("page", "show"), WITHOUT_WEIGHTS)
def test_a_view_shows_what_needs_no_weights_and_says_what_does(
    page: str, show: str, file: Path
) -> None:
    app = visit(page, model=str(file), show=show)
    for words in WITHOUT_WEIGHTS[page, show]:
        assert words in said(app)
    assert pictures(app)
    assert "nan" not in said(app)
    assert not app.error


def test_a_translation_is_shown_step_by_step_without_its_model(tmp_path: Path) -> None:
    path = tmp_path / "translation.safetensors"
    load_model("translate-en-fr").trace("the black cat sleeps").save(path)
    app = visit("encoder_decoder", model=str(path))
    assert pictures(app)
    assert any("<mark" in one.proto.body for one in app.get("html"))  # the words so far
    assert not app.error
    assert not app.info


def test_a_file_as_it_was_sent_is_not_kept_beside_its_run(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storages = list[MemoryUploadedFileManager]()
    add = MemoryUploadedFileManager.add_file

    def noted(self: MemoryUploadedFileManager, session_id: str, file: UploadedFileRec) -> None:
        storages.append(self)
        add(self, session_id, file)

    monkeypatch.setattr(MemoryUploadedFileManager, "add_file", noted)
    app = AppTest.from_file(str(Path("pages/home.py").resolve()), default_timeout=120)
    app.session_state[TYPED] = "stories"  # so that "Other models" is drawn
    app.run()
    app.get("file_uploader")[0].upload("mine.safetensors", file.read_bytes(), "").run()
    assert not app.exception
    assert "mine.safetensors" in said(app)
    assert storages
    assert not any(kept for one in storages for kept in one.file_storage.values())


def test_a_file_that_has_too_much_to_compute_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = count(step=3600).__next__
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=hours))
    app = visit("home", model=str(file))
    assert "took longer than" in said(app)
