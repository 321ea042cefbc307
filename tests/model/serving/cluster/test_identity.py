"""A model, a trace and whatever is asked of them are on the cluster what they are here, to the last bit."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import pytest

import model as ours
from model import Intervention, load_model
from model.loading.registry import models
from model.serving.cluster.cluster_engine import ClusterEngine
from model.serving.cluster.far_model import FarModel
from model.serving.cluster.far_trace import FarTrace
from model.system.elsewhere import Elsewhere, asked_function
from tests.model.serving.cluster.in_process import Here, engine_beside
from tests.model.serving.cluster.questions import QUESTIONS, Asked
from tests.model.serving.cluster.same import differences

TEXTS = {
    "house-gpt": ("Tom Hill saw a red ball. Tom", "Anna Lee saw a red ball. Tom"),
    "stories": ("Once upon a time there was a dog", "Once upon a time there was a cat"),
    "translate-en-fr": ("the boy brings the book .", "the boy brings the bread ."),
    "induction": ("a b c d a b c d a b", "b a c d b a c d b a"),
    "minilm": ("The cat sat on the mat.", "The dog sat on the mat."),
}
CHANGES = {
    "scale": Intervention(scale=1.0),
    "mask": Intervention(mask="none"),
    "causal": Intervention(mask="causal"),
    "hidden": Intervention(hidden=frozenset({1})),
    "positions": Intervention(positions=False),
    "dropout": Intervention(dropout=0.5, seed=3),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[ClusterEngine]:
    with pytest.MonkeyPatch.context() as patch:
        yield engine_beside(Here(), patch)


@cache
def here(name: str) -> Asked:
    return Asked(load_model(name), *TEXTS[name])


@pytest.fixture(params=TEXTS)
def two(request: pytest.FixtureRequest, engine: ClusterEngine) -> tuple[Asked, Asked]:
    """A shipped model here and there."""
    name = request.param
    there = engine.model(name, lambda sentence, share: None)
    assert isinstance(there, FarModel)
    return here(name), Asked(there, *TEXTS[name])


def test_every_shipped_model_is_tried() -> None:
    assert set(TEXTS) == set(models)


def test_a_model_is_told_as_it_is(two: tuple[Asked, Asked]) -> None:
    one, other = (each.model for each in two)
    for name in ("name", "config", "precision", "parameter_count"):
        assert getattr(one, name) == getattr(other, name)
    assert {key: tuple(held.shape) for key, held in one.module.named_weights().items()} == {
        key: tuple(held.shape) for key, held in other.module.named_weights().items()
    }
    assert [(at.place, at.heads) for at in one.module.attentions()] == [
        (at.place, at.heads) for at in other.module.attentions()
    ]
    for text in two[0].text, two[0].other:
        assert one.tokens(text) == other.tokens(text)
        ids = [token.id for token in one.tokens(text)]
        assert one.tokenizer.named(ids) == other.tokenizer.named(ids)


@pytest.mark.parametrize("full", [False, True])
def test_a_trace_is_the_same_bits(two: tuple[Asked, Asked], full: bool) -> None:
    record: Any = "full" if full else "attention"
    one, other = (each.model.trace(each.text, record=record) for each in two)
    assert isinstance(other, FarTrace)
    assert list(differences(one, other)) == []


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_trace_is_the_same_bits(two: tuple[Asked, Asked], change: str) -> None:
    found = [
        _or_refusal(lambda each=each: each.model.trace(each.text, None, CHANGES[change]))
        for each in two
    ]
    assert list(differences(*found)) == []


def test_every_function_that_may_be_asked_is_tried() -> None:
    found = {name for one in _modules() for name in _asked_names(one)}
    assert found == set(QUESTIONS)


def _modules() -> Iterator[ModuleType]:
    for one in pkgutil.walk_packages(ours.__path__, "model."):
        if not one.name.endswith("__main__"):
            yield importlib.import_module(one.name)


def _asked_names(module: ModuleType) -> Iterator[str]:
    """The names under which functions of a module and methods of its classes may be asked."""
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    for held in (module, *(one for one in classes if one.__module__ == module.__name__)):
        for value in vars(held).values():
            function = value.fget if isinstance(value, property) else value
            if getattr(function, "is_asked", False) and function.__module__ == module.__name__:
                yield f"{module.__name__}:{function.__qualname__}"


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_asked_has_the_same_answer_far_and_here(engine: ClusterEngine, name: str) -> None:
    answered = elsewhere = 0
    for model in TEXTS:
        there = Asked(engine.model(model, lambda sentence, share: None), *TEXTS[model])
        found = [_or_refusal(lambda of=of: _ask(name, of)) for of in (here(model), there)]
        assert list(differences(*found)) == [], model
        answered += not isinstance(found[0], ValueError)
        elsewhere += not isinstance(found[0], ValueError) and _lies_elsewhere(name, there)
    assert answered, f"{name} refuses every model: {found[0]}"
    assert elsewhere, f"{name} was asked here only"


def _ask(name: str, of: Asked) -> Any:
    """The answer of a function; of a generator all of them."""
    module, _, path = name.partition(":")
    called: Any = importlib.import_module(module)
    for part in path.split("."):
        called = getattr(called, part)
    called = called.fget if isinstance(called, property) else called
    assert called.__wrapped__ is asked_function(name)
    found = called(**QUESTIONS[name](of))
    if name.endswith("window_by_window"):
        return [told[:-1] for told in found]  # the last are the seconds
    return list(found) if isinstance(found, Iterator) else found


def _lies_elsewhere(name: str, of: Asked) -> bool:
    """Whether something that the function is given lies elsewhere, so that it runs there."""
    given = QUESTIONS[name](of).values()
    first = (one[0] if isinstance(one, tuple) and one else one for one in given)
    return any(isinstance(one, Elsewhere) for one in first)


def _or_refusal(call: Any) -> Any:
    try:
        return call()
    except ValueError as refusal:
        return refusal
