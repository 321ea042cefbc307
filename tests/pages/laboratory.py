"""The laboratory opened by its link, and what is written on it."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

from model import Intervention
from tests.pages.reading import said

PAGE = Path(__file__).resolve().parents[2] / "pages" / "laboratory.py"
TEXT = "Tom Hill saw a red ball"


def linked(parameters: dict[str, str], page: AppTest | None = None) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=120) if page is None else page
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def assert_sound(app: AppTest) -> None:
    assert not app.exception
    assert not app.error
    assert "nan" not in said(app).lower()


def opened(edit: str | None = None, **parameters: str) -> AppTest:
    """edit: the button behind which the controls stand; None: they are in sight."""
    app = linked({"model": "stories", "text": TEXT} | parameters)
    if edit is not None:
        behind(app, edit)
    assert_sound(app)
    return app


def behind(app: AppTest, edit: str) -> None:
    """Opens what stands behind a button."""
    app.session_state[f"laboratory-open-{edit}"] = True
    app.run()


def intervention(app: AppTest) -> Intervention:
    return app.session_state["view"].intervention


def widget(app: AppTest, key: str):
    kinds = (
        app.radio,
        app.number_input,
        app.toggle,
        app.slider,
        app.button,
        app.pills,
        app.selectbox,
    )
    (found,) = [each for kind in kinds for each in kind if each.key and each.key.startswith(key)]
    return found
