"""The drawer "More changes" of Explore opened by its link, and what is written in it."""

from streamlit.testing.v1 import AppTest

from model import Intervention
from tests.pages.reading import PAGES, said

TEXT = "Tom Hill saw a red ball"


def linked(parameters: dict[str, str], group: str | None = None) -> AppTest:
    app = AppTest.from_file(str(PAGES / "home.py"), default_timeout=120)
    for name, value in {"show": "More changes", **parameters}.items():
        app.query_params[name] = value
    if group is not None:
        app.session_state["changes-group"] = group
    return app.run()


def assert_sound(app: AppTest) -> None:
    assert not app.exception
    assert not app.error
    assert "nan" not in said(app).lower()


def opened(group: str | None = None, **parameters: str) -> AppTest:
    """group: of the controls; None: the first."""
    app = linked({"model": "stories", "text": TEXT} | parameters, group)
    assert_sound(app)
    return app


def intervention(app: AppTest) -> Intervention:
    return app.session_state["view"].intervention


def widget(app: AppTest, key: str):
    kinds = (app.number_input, app.toggle, app.slider, app.button, app.pills, app.selectbox)
    (found,) = [each for kind in kinds for each in kind if each.key and each.key.startswith(key)]
    return found
