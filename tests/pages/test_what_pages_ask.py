"""What a page asks of the engine and what it keeps. A run makes one pass for each request, also where no
trace is small enough to be kept, and cuts each text into tokens once. Between two runs nothing that Streamlit
keeps holds a model or a trace: no widget, no fragment, no file to download, no value of the session. Where
the model lies on a cluster, a page says the same."""

import asyncio
import gc
import sys
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest
import tiktoken
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest

from model import Model, Token, Trace
from model.run.tokenizers import gpt2_ids
from model.run.weights_hash import fingerprint
from model.serving.cluster import far_trace
from model.serving.engine import Engine
from tests.model.serving.cluster.in_process import Here, engine_beside
from tests.model.tiny import loaded
from tests.pages.reading import control, said, visit, walk
from tests.server import numbers, serving
from tests.visitor import Visitor
from viz.shell import background, page
from viz.state.engine import engine, forget_engine
from viz.state.look import Look
from viz.state.navigation import PAGES, PageEntry

HOSTS = Here()  # their models are loaded once
TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
HOUSE = {"model": "house-gpt", "text": TEXT}
CHANGED = {"mask": "none", "place": "decoder.1.self"}
RUN_CHANGES = ("pages/home.py",)
TRANSLATED = {"model": "translate-en-fr", "text": "the black cat sleeps"}
QUESTIONS = "try-"  # the row of questions, which hides the picture while it is open
# What these make when they are first opened is kept: small pictures, checkpoints, the step to open on.
OPEN_TWICE = ("library", "experiments", "training", "encoder_decoder")
# What these views read besides the sentence: another one, each alone, others six ways, words before a step;
# or more of what one pass leaves.
MORE = {
    "Two sentences": 1,
    "Two models": 1,
    "Untrained": 7,  # the checkpoints of a training, one after another
    "Word order": 6,
    "Translate": 1,
    "Patch": 1,
    "Padded batch": 2,
    "Steer": 2,
    "Token by token": 1,
    "KV cache": 2,
    "Your own French": 1,
    "Two runs": 10,  # those of two trainings
    "No positions": 1,  # the words in another order
    "No sinks": 1,  # the example
}


@dataclass
class Asked:
    """What pages asked for, and what of it still lives. files: the functions that make files, which an app
    test drops and a server keeps. living: each model, trace and record of attention that was read."""

    passes: list[tuple[Any, ...]] = field(default_factory=list)
    cuts: Counter[str] = field(default_factory=Counter)
    files: list[Callable[[], object]] = field(default_factory=list)
    living: list[weakref.ref[Any]] = field(default_factory=list)

    def clear(self) -> None:
        for noted in (self.passes, self.cuts, self.files):
            noted.clear()

    def ways(self, app: AppTest) -> list[str]:
        """The ways from what Streamlit keeps to what lives although the engine is forgotten."""
        forget_engine()
        engine()  # a new one: the metrics let the old one go
        gc.collect()
        living = {id(thing) for thing in (ref() for ref in self.living) if thing is not None}
        if not living:
            return []
        ways = [*_ways([app._session_state, app._fragment_storage, self.files], living)]
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Watches an engine of the test's own, which can keep no trace of these texts."""
    asked = Asked()
    passing, tracing, adding = Model.trace, Engine.trace, MediaFileManager.add_deferred
    cutting = tiktoken.Encoding.encode

    def passed(model: Model, *given: Any, **more: Any) -> Trace:
        # The checkpoints of a training have one name.
        asked.passes.append((model.name, fingerprint(model), *given, *sorted(more.items())))
        return passing(model, *given, **more)

    def traced(engine: Engine, *given: Any) -> Trace:
        trace = tracing(engine, *given)
        asked.living += map(weakref.ref, (trace, *trace.attention))
        return trace

    def opened(name: str, **_: object) -> Model:
        asked.living.append(weakref.ref(model := copy(loaded(name))))
        return model

    def added(manager: MediaFileManager, make: Callable[[], Any], *given: Any, **more: Any) -> str:
        asked.files.append(make)
        return adding(manager, make, *given, **more)

    def cut(encoding: tiktoken.Encoding, text: str, **how: Any) -> list[int]:
        asked.cuts[text] += 1
        return cutting(encoding, text, **how)

    monkeypatch.setattr(Model, "trace", passed)
    monkeypatch.setattr(Engine, "trace", traced)
    monkeypatch.setattr("model.serving.engine.load_model", opened)
    monkeypatch.setattr(MediaFileManager, "add_deferred", added)
    monkeypatch.setattr(tiktoken.Encoding, "encode", cut)
    monkeypatch.setattr("viz.state.engine.Engine", partial(Engine, trace_bytes=1))
    monkeypatch.setattr(background, "AT_FIRST", 50)  # seconds: runs of many passes end
    gpt2_ids.cache_clear()
    forget_engine()
    gc.collect()
    gc.freeze()  # what was there before holds nothing of this test
    yield asked
    forget_engine()
    gc.unfreeze()


def opened(file: str, **parameters: str) -> AppTest:
    app = visit(file, **(TRANSLATED if "encoder" in file else HOUSE) | parameters)
    assert not app.error
    return app


def ways_with_open_boxes(app: AppTest, asked: Asked, *, questions: bool = False) -> list[str]:
    """The ways to what lives when every box and row is open that the server fills when it is opened: those
    whose state it knows. The next view finds them closed again."""
    boxes = [getattr(box, "key", None) for box in (*app.expander, *app.get("popover"))]
    closed = {key for key in boxes if key in app.session_state and not app.session_state[key]}
    closed = {key for key in closed if key.startswith(QUESTIONS) == questions}
    for is_open in (True, False):
        for key in closed:
            app.session_state[key] = is_open
        if closed and is_open:
            app.run()
            assert not app.exception
    return asked.ways(app)


def looked_through(file: str, asked: Asked, **changed: str) -> dict[str, str]:
    """What each view of a page says; what it passes, cuts and holds is held to the laws."""
    page, words, at_most = opened(file, **changed), dict[str, str](), 2 if changed else 1
    if PurePath(file).stem in OPEN_TWICE:
        asked.clear()
        page.run()
    for view, app in walk(page):
        words[view] = said(app)
        assert engine().holdings.traces == 0  # none was small enough to be kept
        assert {one: count for one, count in Counter(asked.passes).items() if count > 1} == {}, view
        assert len(asked.passes) <= at_most + MORE.get(view, 0), view
        assert set(asked.cuts.values()) <= {1}, view
        assert ways_with_open_boxes(app, asked) == [], view
        asked.clear()
    assert ways_with_open_boxes(page, asked, questions=True) == []
    return words


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_every_view_asks_once_holds_nothing_and_says_the_same_on_a_cluster(
    page: PageEntry, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = looked_through(page.file, asked)
    assert asked.living or not page.reads
    monkeypatch.undo()
    monkeypatch.setattr("viz.state.engine.Engine", partial(engine_beside, HOSTS, monkeypatch))
    monkeypatch.setattr(far_trace, "SMALL", 0)  # as a long text: each part is asked for
    forget_engine()
    there = {view: said(app) for view, app in walk(opened(page.file))}
    assert there == here


@pytest.mark.slow
@pytest.mark.parametrize("file", RUN_CHANGES)
def test_a_view_of_a_changed_run_asks_twice_and_holds_nothing(file: str, asked: Asked) -> None:
    looked_through(file, asked, **CHANGED)


@pytest.mark.parametrize("mask", ["model", "none"])
def test_the_pass_reads_the_tokens_that_the_page_has_read(mask: str, asked: Asked) -> None:
    opened("home", text="Tom saw a red ball", mask=mask)
    assert asked.cuts == {"Tom saw a red ball": 1}


def test_a_switch_reads_the_tokens_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cutting, switching = Model.tokens, page.switched
    cuts, meanwhile = list[str](), list[int]()

    def cut(model: Model, text: str) -> tuple[Token, ...]:
        cuts.append(text)
        return cutting(model, text)

    def switched(look: Look) -> Look | None:
        before = len(cuts)
        changed = switching(look)
        meanwhile.append(len(cuts) - before)
        return changed

    monkeypatch.setattr(Model, "tokens", cut)
    monkeypatch.setattr(page, "switched", switched)
    visit("home", **HOUSE, **CHANGED)
    assert cuts
    assert meanwhile == [0]


def test_the_steps_of_a_text_are_one_pass(asked: Asked) -> None:
    text = "Anna saw a red ball"  # of no other test: what was written before is remembered
    app = opened("pages/writing.py", text=text)
    asked.clear()
    (step,) = [slider for slider in app.slider if slider.label == "Step"]
    step.set_value(4).run()
    assert len(asked.passes) == 2  # the sentence, and the sentence with all that was written
    assert len(set(asked.passes)) == 2


def test_hiding_a_token_passes_the_sentence_once_more(asked: Asked) -> None:
    app = opened("pages/all_heads.py", show="First token")
    asked.clear()
    control(app, "Number").select("When it is hidden").run()
    assert len(asked.passes) == len(set(asked.passes)) == 2


@pytest.mark.process
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
        assert asyncio.run(opened("", mask="none")) == (2, 2)
