"""What a page asks the cluster for, and what stays with the app: each question takes milliseconds, and all
visitors wait for them."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from model import load_model
from model.loading.registry import silent
from model.run.weights_hash import fingerprint
from model.serving.cluster.cluster_engine import ClusterEngine
from model.serving.cluster.far_model import FarModel
from model.serving.engine import CacheLookup, Event, Loaded, Passed, Request
from tests.model.serving.cluster.in_process import Here, engine_beside
from tests.pages.reading import named, visit
from viz.state.engine import forget_engine


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The functions that are asked for, and how often."""
    found: Counter[str] = Counter()
    ask = ClusterEngine._asked

    def counted(engine: ClusterEngine, model: str, function: str, *given: Any, **how: Any) -> Any:
        found[function] += 1
        return ask(engine, model, function, *given, **how)

    monkeypatch.setattr(ClusterEngine, "_asked", counted)
    monkeypatch.setattr("viz.state.engine.Engine", partial(engine_beside, Here(), monkeypatch))
    forget_engine()
    yield found
    forget_engine()


def test_a_page_asks_for_a_new_sentence_once_and_for_nothing_that_it_has_seen(
    asked: Counter[str],
) -> None:
    app = visit("home", text="The cat saw the dog")
    assert asked.pop("read") <= 2  # the parts of a small trace come with it, but for rows of logits
    assert max(asked.values()) == 1
    for is_hidden in (False, True):
        named(app.toggle, "hero-mask").set_value(is_hidden).run()
    asked.clear()
    for is_hidden in (False, True):
        named(app.toggle, "hero-mask").set_value(is_hidden).run()
        assert not app.exception
    assert asked == {}


def test_a_trace_file_that_is_dropped_stays_with_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts, text = Here(), "Anna saw a dog"
    load_model("house-gpt").trace(text).save(tmp_path / "run.trace")
    content = (tmp_path / "run.trace").read_bytes()
    one, other = (engine_beside(hosts, monkeypatch) for _ in range(2))
    name = one.keep_file(BytesIO(content), len(content))
    trace = one.trace(Request(name, text), lambda place: None)
    assert trace.attention[0].weights(0).shape == (len(trace.tokens),) * 2
    assert hosts.hosts == {}
    assert not other.has(name)


def test_a_pass_is_counted_once_in_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    engine = engine_beside(Here(), monkeypatch, tell=events.append)
    request = Request("house-gpt", "Anna saw a dog")
    for _ in range(2):
        trace = engine.trace(request, lambda place: None)
        trace.require_prediction().after(-1)
    assert [type(one) for one in events] == [Loaded, CacheLookup, Passed, CacheLookup]
    assert [one.hit for one in events if isinstance(one, CacheLookup)] == [False, True]


def test_the_fingerprint_of_a_model_is_asked_once(
    asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = engine_beside(Here(), monkeypatch).model("house-gpt", silent)
    assert isinstance(model, FarModel)
    known = {fingerprint(model) for _ in range(2)}
    assert known == {fingerprint(load_model("house-gpt"))}
    assert sum(count for name, count in asked.items() if "weights_hash" in name) == 1
