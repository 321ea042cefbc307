"""A run of a page makes one pass for each request, also where no trace is small enough to be kept."""

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from streamlit.testing.v1 import AppTest

from model import Model, Trace
from model.serving.engine import Engine
from tests.model.tiny import loaded
from tests.pages.reading import control, visit
from tests.server import numbers, serving
from tests.visitor import Visitor
from viz.state.engine import engine, forget_engine
from viz.state.navigation import PAGES

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
CHANGED = {"mask": "none"}
RUN_CHANGES = ("pages/attention.py", "pages/laboratory.py")
TRANSLATED = {"model": "translate-en-fr", "text": "the black cat sleeps"}
# What these views read besides the sentence: another one, each alone, others six ways, words before a step.
MORE = {
    "Two sentences or models": 1,
    "Two sentences": 1,
    "Word order": 6,
    "Translate": 1,
    "Patch": 1,
    "Padded batch": 2,
    "KV cache": 2,
}


class Passes(list[tuple[Any, ...]]):
    """The passes that were made: what each was asked, and the traces that somebody still holds."""

    def __init__(self) -> None:
        super().__init__()
        self.traces: list[weakref.ref[Trace]] = []

    @property
    def held(self) -> list[Trace]:
        if any(made() is not None for made in self.traces):
            gc.collect()
        return [trace for made in self.traces if (trace := made()) is not None]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passes]:
    """What was passed, in turn, by an engine that can keep no trace of these texts."""
    made = Passes()
    trace = Model.trace

    def counted(model: Model, *given: Any, **more: Any) -> Trace:
        made.append((model.name, *given, *sorted(more.items())))
        passed = trace(model, *given, **more)
        made.traces.append(weakref.ref(passed))
        return passed

    monkeypatch.setattr(Model, "trace", counted)
    monkeypatch.setattr("model.serving.engine.load_model", lambda name, **_: loaded(name))
    monkeypatch.setattr("viz.state.engine.Engine", partial(Engine, trace_bytes=1))
    forget_engine()
    yield made
    forget_engine()


def opened(file: str, **parameters: str) -> AppTest:
    app = visit(file, **{"model": "house-gpt", "text": TEXT} | parameters)
    assert not app.error
    return app


@pytest.mark.parametrize(
    ("file", "changed"),
    [(page.file, {}) for page in PAGES] + [(file, CHANGED) for file in RUN_CHANGES],
)
def test_every_view_passes_the_sentence_once_unchanged_and_once_changed(
    file: str, changed: dict[str, str], passes: Passes
) -> None:
    if "glossary" in file:
        opened(file)  # its small pictures of shipped models are made once for the process
        passes.clear()
    app = opened(file, **(TRANSLATED if "encoder" in file else {}), **changed)
    runs = 2 if changed else 1
    (views,) = [box for box in app.segmented_control if box.label == "Show"] or [None]
    for view in views.options if views else [""]:
        if views:
            passes.clear()
            control(app, "Show").set_value(view).run()
            assert not app.exception
        assert engine().holdings.traces == 0  # none was small enough to be kept
        assert {one: count for one, count in Counter(passes).items() if count > 1} == {}, view
        assert len(passes) <= runs + MORE.get(view, 0), view
        assert passes.held == [], view  # an open page keeps requests, no traces


def test_a_row_of_questions_passes_each_intervention_once(passes: Passes) -> None:
    app = opened("pages/attention.py")
    app.session_state["try-attention-number"] = 1  # what becomes of a weight without scaling
    app.session_state["try-attention"] = True
    passes.clear()
    app.run()
    assert len(passes) > 1  # a question runs changes
    assert len(set(passes)) == len(passes)


def test_the_steps_of_a_text_are_passed_once_each(passes: Passes) -> None:
    text = "Anna saw a red ball"  # of no other test: what was written before is remembered
    app = opened("pages/prediction.py", show="Token by token", text=text)
    passes.clear()
    (step,) = [slider for slider in app.slider if slider.label == "Step"]
    step.set_value(4).run()
    assert len(passes) == 2  # the sentence, and what was written before this step
    assert len(set(passes)) == 2


def test_hiding_a_token_passes_the_sentence_once_more(passes: Passes) -> None:
    app = opened("pages/all_heads.py", show="Why the first token?")
    passes.clear()
    control(app, "Picture").set_value("When it is hidden").run()
    assert len(passes) == len(set(passes)) == 2


def test_the_servers_own_numbers_count_one_pass_for_each_request(tmp_path: Path) -> None:
    """The traces of the sentence take more than the one megabyte that this server may keep."""
    text = " ".join([TEXT] * 4)
    more = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ATTENTION_TRACE_MB": "1"}
    with serving(tmp_path / "log", more=more) as server:

        async def opened(page: str, **parameters: str) -> tuple[float, float]:
            before = numbers(server)
            query = urlencode({"text": text, "model": "house-gpt"} | parameters)
            async with Visitor(server.port, page, query) as visitor:
                assert visitor.troubles == []
            after = numbers(server)
            assert after["attention_cache_traces"] == 0
            counted = ("attention_traces_total", "attention_pass_seconds_count")
            asked, passes = (after[name] - before.get(name, 0) for name in counted)
            return asked, passes

        for page in ("home", "all_heads", "layer_norm", "prediction", "shapes_and_cost"):
            assert asyncio.run(opened("" if page == "home" else page)) == (1, 1), page
        for page in ("attention", "laboratory"):
            assert asyncio.run(opened(page, mask="none")) == (2, 2), page
