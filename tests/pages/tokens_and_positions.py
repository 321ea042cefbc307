"""A view of the pages on tokens and positions, its controls, and what is written on it."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGES = Path(__file__).resolve().parents[2] / "pages"


def opened(page: str, view: str, **parameters: str) -> AppTest:
    app = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=60)
    for name, value in ({"model": "stories", "text": "the cat saw the cat"} | parameters).items():
        app.query_params[name] = value
    app.run()
    control(app, "Show").set_value(view).run()
    assert not app.exception
    return app


def control(app: AppTest, label: str):
    kinds = (
        app.segmented_control,
        app.selectbox,
        app.slider,
        app.number_input,
        app.multiselect,
        app.text_input,
    )
    (found,) = [widget for kind in kinds for widget in kind if widget.label == label]
    return found


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning)
    return " ".join(part.value for kind in kinds for part in kind)
