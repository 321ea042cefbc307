"""Every view says the same where the model lies on a cluster as where it lies in the app."""

from collections.abc import Iterator
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from model.serving.cluster import far_trace
from tests.model.serving.cluster.in_process import Here, engine_beside
from tests.pages.reading import said, visit
from viz.state.engine import forget_engine
from viz.state.navigation import PAGES

HOSTS = Here()  # their models are loaded once
TEXT = "Anna gave Tom the green cup"
TRANSLATED = {"model": "translate-en-fr", "text": "the cat sees a dog"}


@pytest.fixture
def on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Call `undo` to be in the app again."""
    monkeypatch.setattr("viz.state.engine.Engine", partial(engine_beside, HOSTS, monkeypatch))
    monkeypatch.setattr(far_trace, "SMALL", 0)  # as a long text: each part is asked for
    forget_engine()
    yield monkeypatch
    monkeypatch.undo()
    forget_engine()


@pytest.mark.parametrize("file", [page.file for page in PAGES])
def test_a_page_says_the_same(file: str, on_a_cluster: pytest.MonkeyPatch) -> None:
    there = views_of(file)
    on_a_cluster.undo()
    forget_engine()
    here = views_of(file)
    assert [*there] == [*here]
    for name, words in here.items():
        assert there[name] == words, name


def views_of(file: str) -> dict[str, str]:
    """What each view of a page says."""
    app = visit(file, **(TRANSLATED if "encoder" in file else {"text": TEXT}))
    (views,) = [box for box in app.segmented_control if box.label == "Show"] or [None]
    found = {}
    for view in views.options if views else [""]:
        if views:
            show(app, view)
        assert not app.error
        found[view] = said(app)
    return found


def show(app: AppTest, view: str) -> None:
    (views,) = [box for box in app.segmented_control if box.label == "Show"]
    views.set_value(view).run()
    assert not app.exception
