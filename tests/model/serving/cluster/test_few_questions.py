"""How often a page asks the cluster: each question takes milliseconds, and all visitors wait for them."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from model.serving.cluster.cluster_engine import ClusterEngine
from tests.model.serving.cluster.in_process import Here, engine_beside
from tests.pages.reading import control, visit
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
    app = visit("attention", text="The cat saw the dog")
    assert asked["read"] == 0  # the parts of a small trace come with it
    assert max(asked.values()) == 1
    for mask in ("none: future visible", "the model's own"):
        control(app, "Mask").set_value(mask).run()
    asked.clear()
    for mask in ("none: future visible", "the model's own"):
        control(app, "Mask").set_value(mask).run()
        assert not app.exception
    assert asked == {}
