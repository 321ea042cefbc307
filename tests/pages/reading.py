"""A page opened by a link, its controls, and what it shows, read back from what was sent to the browser."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget, WidgetList

from model import Model
from viz.state.engine import engine
from viz.state.navigation import HOME, entry
from viz.views.experiments.experiments import experiments

PAGES = Path(__file__).resolve().parents[2] / "pages"
# Texts that could break a view: one letter, everything that a page could obey, and a long one.
ODD_TEXTS = (
    "a",
    "<b>x</b> &lt; <script>alert(1)</script> *a* $x^2$ :red[r] `c` #000001 🦊 \u202e\u200b \x07 abc",
    "word " * 600,
)
KINDS = ("segmented_control", "pills", "radio", "selectbox", "multiselect", "slider", "select_slider",
         "number_input", "text_input", "text_area")  # fmt: skip


def visit(page: str, **parameters: str) -> AppTest:
    """A page, by the name of its file, as a link with these parameters opens it."""
    app = AppTest.from_file(str(PAGES / f"{Path(page).stem}.py"), default_timeout=120)
    for name, value in parameters.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def control(app: AppTest, label: str) -> Any:
    """The one control of this label, of whatever kind."""
    (found,) = [one for kind in KINDS for one in getattr(app, kind) if one.label == label]
    return found


def choose(app: AppTest, label: str, value: object) -> None:
    control(app, label).set_value(value).run()
    assert not app.exception


def press(app: AppTest, label: str) -> AppTest:
    """Clicks the one button of this label."""
    (button,) = [one for one in app.button if one.label == label]
    button.click().run()
    assert not app.exception
    return app


def shows(app: AppTest) -> list[Any]:
    """The control that chooses a view, if the page has views: side by side, or in a list."""
    names = ("Show", "Colour by")
    return [one for one in (*app.segmented_control, *app.selectbox) if one.label in names]


def walk(app: AppTest) -> Iterator[tuple[str, AppTest]]:
    """The view that a page opens on, then each of the others, by name; "" where a page is one view. Those of
    Explore are drawers, which links open."""
    (row,) = shows(app) or [None]
    yield row.value if row else "", app
    yield from cards(app)
    for view in [view for view in (row.options if row else ()) if view != row.value]:
        choose(app, row.label, view)
        yield view, app
    yield from drawers(app)


def cards(app: AppTest) -> Iterator[tuple[str, AppTest]]:
    """Those of Experiments, which are links, by name; none on another page."""
    for one in experiments() if Path(app._script_path).name == "experiments.py" else ():
        app.query_params["show"] = one.show
        app.run()
        assert not app.exception
        yield one.show, app


def drawers(app: AppTest) -> Iterator[tuple[str, AppTest]]:
    """Those of Explore, by name; none on another page."""
    for drawer in entry(HOME).variants if app.session_state["page"] == HOME else ():
        app.query_params["show"] = drawer
        app.run()
        assert not app.exception
        yield drawer, app


def said(app: AppTest) -> str:
    """All that is written in words, as the visitor reads it."""
    kinds = (app.markdown, app.caption, app.info, app.success, app.warning, app.error)
    return " ".join(part.value for kind in kinds for part in kind).replace("\\", "")


def own(name: str) -> Model:
    """A model as the pages have it."""
    return engine().model(name, lambda *news: None)


def named(widgets: WidgetList, name: str) -> Widget:
    """The one widget of this name: its key has a number behind it once the page has set its value anew."""
    (found,) = [one for one in widgets if re.fullmatch(rf"{name}(-\d+)?", one.key or "")]
    return found


def traces(app: AppTest) -> list[dict]:
    """The traces of the one picture on the page."""
    (picture,) = app.get("plotly_chart")
    return json.loads(picture.proto.spec)["data"]


def tables(app: AppTest) -> list[pd.DataFrame]:
    """The tables of the page, and after them those behind the ⋯ of pictures, which are opened for it."""

    def behind() -> list[Any]:
        named = "More: .*table"
        return [box for box in app.get("popover") if re.match(named, box.proto.popover.label)]

    for box in behind():
        app.session_state[box.key] = True
    if behind():
        app.run()
    last = {id(table) for box in behind() for table in box.dataframe}
    return [table.value for table in sorted(app.dataframe, key=lambda table: id(table) in last)]


def drawn(app: AppTest, kind: str = "heatmap", axis: str = "z", at: int = 0) -> np.ndarray:
    """One array of the picture: of its trace number `at` of this kind; a heatmap's by rows."""
    return numbers([trace for trace in traces(app) if trace["type"] == kind][at][axis])


def numbers(written: object) -> np.ndarray:
    """Plotly writes an array as a list, or as base64 with its type and its shape."""
    if not isinstance(written, dict):
        return np.array(written, dtype=float)
    flat = np.frombuffer(base64.b64decode(written["bdata"]), written["dtype"])
    shape = written.get("shape")
    return flat.reshape([int(length) for length in shape.split(",")]) if shape else flat
