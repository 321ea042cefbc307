"""What Explore shows before its model is loaded: the recorded run, which the live one equals."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import PAGES
from tests.server import REPOSITORY
from tools.opening import arrays, live
from viz.explorer.component import RECORDED_RUN
from viz.explorer.packing import words
from viz.server.asgi import APP
from viz.state.engine import forget_engine
from viz.state.link import View
from viz.views.home import opening
from viz.views.home.opening import recorded

OF_ITS_BYTES = {
    "digest",
    "part",
}  # names of arrays by their bytes: another processor rounds otherwise
BEFORE_TORCH = """
import sys
import viz.views.home.opening as opening
from streamlit.testing.v1 import AppTest

def refused(*asked):
    heavy.update({"torch", "pandas", "pyarrow", "transformers"} & {*sys.modules})
    raise ValueError

heavy, opening.loaded = {"not asked"}, refused
page = AppTest.from_file(sys.argv[1], default_timeout=300).run()
sys.exit(bool(page.exception) or sorted(heavy - {"not asked"}) or None)
"""


def test_the_recorded_run_is_that_of_the_live_model() -> None:
    (said, numbers), (live_said, live_numbers) = recorded(), live()
    where, live_where = arrays(said), arrays(live_said)
    assert where == live_where, "run `python -m tools.opening`"
    assert len(where) > 8
    for path, (start, end) in where.items():
        ours, theirs = (
            np.frombuffer(block[start:end], np.float32) for block in (numbers, live_numbers)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=path)
    assert_same(said, live_said, "")


def assert_same(ours: object, theirs: object, path: str) -> None:
    """Words alike, numbers to rounding."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), path
        for name in ours.keys() - OF_ITS_BYTES:
            assert_same(ours[name], theirs[name], f"{path}/{name}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            assert_same(*pair, f"{path}/{at}")
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-4), path
    else:
        assert ours == theirs, f"{path}: run `python -m tools.opening`"


def test_it_is_drawn_before_torch_and_pandas_are_read() -> None:
    said = [sys.executable, "-c", BEFORE_TORCH, str(APP)]
    subprocess.run(said, cwd=REPOSITORY, check=True, timeout=300)


def test_the_live_run_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another head was chosen meanwhile."""
    drawn = []
    draw = opening.recorded_explorer

    def noted(said: dict[str, object], *how: object, **more: object) -> object:
        drawn.append(said["hero"]["job"])
        return draw(said, *how, **more)

    monkeypatch.setattr(opening, "recorded_explorer", noted)
    for head, knows_job in ((View().head, True), (2, False)):
        forget_engine()
        app = AppTest.from_file(str(PAGES / "home.py"), default_timeout=300)
        app.query_params["head"] = str(head)
        app.run()
        assert not app.exception
        (message,) = (
            words(part.proto.bytes)
            for part in app.get("bidi_component")
            if b'"checked"' in part.proto.bytes
        )
        assert bool(drawn.pop()) == knows_job
        assert message["run"] != RECORDED_RUN
        assert message["selection"]["head"] == head
    app.run()
    assert not drawn


def test_another_text_or_model_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "is_loaded", lambda name: False)
    for view, is_shown in (
        (View(), True),
        (replace(View(), head=2, stage="scores", query=3, key=0), True),
        (replace(View(), text="Tom"), False),
        (replace(View(), model="stories"), False),
        (replace(View(), place="decoder.0.self"), False),
        (replace(View(), show="Why?"), False),
        (replace(View(), detail="full"), False),
    ):
        monkeypatch.setattr(opening, "current", lambda view=view: view)
        assert opening.is_recorded() == is_shown, view
