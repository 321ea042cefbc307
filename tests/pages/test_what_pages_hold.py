"""Between two runs of a page nothing that Streamlit keeps of it holds a model or a trace: no widget, no
fragment, no file to download, no value of the session."""

import gc
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest

from model import Model, Trace
from model.serving.engine import Engine
from tests.pages.reading import control, visit
from viz.shell import background
from viz.state.engine import engine, forget_engine
from viz.state.navigation import PAGES, entry

CHANGED = {
    "model": "house-gpt",
    "text": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "mask": "none",
    "place": "decoder.1.self",
}
TRANSLATED = {"model": "translate-en-fr", "text": "the black cat sleeps"}
QUESTIONS = "try-"  # the row of questions, which hides the picture while it is open


@dataclass
class Kept:
    """What an app test drops and a server keeps: the functions that make files. living: a weak reference to
    each model, trace and record of attention that the pages read."""

    files: list[Callable[[], object]] = field(default_factory=list)
    living: list[weakref.ref[Any]] = field(default_factory=list)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """Watches an engine of the test's own: other tests share models."""
    kept = Kept()
    add, load, trace = MediaFileManager.add_deferred, Engine.model, Engine.trace

    def added(manager: MediaFileManager, make: Callable[[], Any], *given: Any, **more: Any) -> str:
        kept.files.append(make)
        return add(manager, make, *given, **more)

    def loaded(engine: Engine, *given: Any) -> Model:
        model = load(engine, *given)
        kept.living.append(weakref.ref(model))
        return model

    def traced(engine: Engine, *given: Any) -> Trace:
        made = trace(engine, *given)
        kept.living += map(weakref.ref, (made, *made.attention))
        return made

    monkeypatch.setattr(MediaFileManager, "add_deferred", added)
    monkeypatch.setattr(Engine, "model", loaded)
    monkeypatch.setattr(Engine, "trace", traced)
    monkeypatch.setattr(background, "AT_FIRST", 50)  # seconds: runs of many passes end
    forget_engine()
    yield kept
    forget_engine()


def held(app: AppTest, kept: Kept) -> list[str]:
    """The ways from what Streamlit keeps to the models and traces that live when the engine is forgotten."""
    forget_engine()
    engine()  # a new one: the metrics let the old one go
    gc.unfreeze()
    gc.collect()
    living = {id(thing) for thing in (ref() for ref in kept.living) if thing is not None}
    if not living:
        return []
    ways = [*_ways([app._session_state, app._fragment_storage, kept.files], living)]
    return ways or ["from elsewhere"]


def _ways(roots: Sequence[object], living: set[int]) -> Iterator[str]:
    """The first way to each, by the names on it."""
    modules = {id(vars(module)) for module in sys.modules.values()}
    queue, reached = deque((root, type(root).__name__) for root in roots), set[int]()
    while queue:
        thing, way = queue.popleft()
        for other in gc.get_referents(thing):
            if id(other) in reached or id(other) in modules or isinstance(other, type | ModuleType):
                continue
            reached.add(id(other))
            step = f"{way} > {getattr(other, '__qualname__', type(other).__name__)}"
            if id(other) in living:
                yield step
            queue.append((other, step))


def open_boxes(app: AppTest, *, questions: bool = False) -> None:
    """Opens every box and row that the server fills when it is opened: those whose state it knows."""
    closed = {
        box.key
        for box in (*app.expander, *app.get("popover"))
        if getattr(box, "key", None) in app.session_state and not app.session_state[box.key]
    }
    if closed := {key for key in closed if key.startswith(QUESTIONS) == questions}:
        for key in closed:
            app.session_state[key] = True
        app.run()


@pytest.mark.parametrize("file", [page.file for page in PAGES])
def test_an_open_page_holds_no_model_and_no_trace(file: str, kept: Kept) -> None:
    app, ways = (
        visit(file, **(TRANSLATED if "encoder" in file else CHANGED)),
        dict[str, list[str]](),
    )
    (views,) = [box.options for box in app.segmented_control if box.label == "Show"] or [[""]]
    for view in views:
        if view and view != views[0]:
            control(app, "Show").set_value(view).run()
        open_boxes(app)
        if view == views[-1]:
            open_boxes(app, questions=True)
        assert not app.exception, view
        if way := held(app, kept):
            ways[view] = way
    assert ways == {}
    assert kept.living or not entry(file).reads
