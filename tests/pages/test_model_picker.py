"""The way to other models, without a browser."""

import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.model.hub_models import saved
from viz.shell.model_picker import TYPED

REPOSITORY = Path(__file__).parents[2]
SECONDS = 300


def test_the_button_opens_what_the_box_says_though_it_was_drawn_for_another_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    app = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=SECONDS)
    app.session_state[TYPED] = str(tmp_path)
    app.run()
    folder = saved("bert")
    app.text_input(TYPED).set_value(str(folder))
    app.button("picker-open").click().run()
    deadline = time.monotonic() + SECONDS
    while app.query_params.get("model") is None and time.monotonic() < deadline:
        app.run()
    assert app.query_params["model"] == str(folder)


def test_a_folder_that_was_open_stays_in_the_list_of_its_session_alone() -> None:
    folder, page = str(saved("bert")), str(REPOSITORY / "pages" / "tokens.py")
    app = AppTest.from_file(page, default_timeout=SECONDS)
    app.query_params["model"] = folder
    app.run()
    chosen = app.selectbox("choose-model")
    chosen.select(next(name for name in chosen.options if "House" in name)).run()
    listed = app.selectbox("choose-model").options
    assert Path(folder).name in listed
    assert listed == list(dict.fromkeys(listed))
    stranger = AppTest.from_file(page, default_timeout=SECONDS).run()
    assert Path(folder).name not in stranger.selectbox("choose-model").options
