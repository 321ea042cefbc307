"""The laboratory opened by its link, and what is written on it."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGE = Path(__file__).resolve().parents[2] / "pages" / "laboratory.py"


def linked(parameters: dict[str, str], page: AppTest | None = None) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=60) if page is None else page
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def assert_sound(app: AppTest) -> None:
    assert not app.exception
    assert not app.error
    assert "nan" not in said(app).lower()


def said(app: AppTest) -> str:
    return " ".join(part.value for kind in (app.markdown, app.caption) for part in kind)
