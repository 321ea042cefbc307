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
