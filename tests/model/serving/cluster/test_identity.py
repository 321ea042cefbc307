"""A model, a trace and whatever is asked of them are on the cluster what they are here, to the last bit."""

import importlib
from collections.abc import Iterator
from functools import cache
from operator import attrgetter
from typing import Any

import pytest

from model import Intervention, load_model
from model.loading.registry import models, silent
from model.run.word_cuts import word_cut, words_of
from model.serving.cluster import far_trace
from model.serving.cluster.cluster_engine import ClusterEngine
from model.serving.cluster.far_model import FarModel
from model.serving.cluster.far_trace import FarTrace
from model.serving.engine import Request
from model.system.remote import Remote
from model.trace.blocks import of_query
from tests.cases import cases
from tests.model.hub_models import loaded, saved
from tests.model.serving.cluster.in_process import Here, engine_beside
from tests.model.serving.cluster.questions import Asked, arguments, asked_names
from tests.model.serving.cluster.same import differences

pytestmark = pytest.mark.slow

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


HOSTS = Here()  # their models are loaded once
SMALL = {"whole": 1e9, "in parts": 0}  # bytes of a trace that travels whole
HUB = ("gpt2", "llama", "t5", "bert")  # tiny models with a tokenizer of the library


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> ClusterEngine:
    monkeypatch.setattr(far_trace, "SMALL", 0)
    return engine_beside(HOSTS, monkeypatch)


@cache
def here(name: str) -> Asked:
    return Asked(load_model(name), *TEXTS[name])


WAYS = [("in parts", name) for name in TEXTS] + [
    ("whole", "house-gpt"),
    ("whole", "translate-en-fr"),
]


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Asked, Asked]:
    """A shipped model here and there."""
    small, name = request.param
    monkeypatch.setattr(far_trace, "SMALL", SMALL[small])
    there = engine_beside(HOSTS, monkeypatch).model(name, silent)
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


@cases("full", [False, True])
def test_a_trace_is_the_same_bits(full, two: tuple[Asked, Asked]) -> None:
    record: Any = "full" if full else "attention"
    one, other = (each.model.trace(each.text, record=record) for each in two)
    assert isinstance(other, FarTrace)
    assert list(differences(one, other)) == []


def test_changed_traces_are_the_same_bits(two: tuple[Asked, Asked]) -> None:
    for name, change in CHANGES.items():
        runs = [
            _or_refusal(lambda each=each, change=change: each.model.trace(each.text, None, change))
            for each in two
        ]
        assert list(differences(*runs)) == [], name


@cases("family", HUB)
def test_a_model_of_the_hub_reads_writes_and_is_the_same_bits(
    family, in_parts: ClusterEngine
) -> None:
    one = loaded(family)
    other = in_parts.model(str(saved(family)), silent)
    text = "The cat sat on the mat"
    for ask in (
        lambda model: model.tokens(text),
        lambda model: model.tokenizer.decode([token.id for token in model.tokens(text)]),
        lambda model: model.target_tokenizer.named(range(9)),
        lambda model: model.new_words("a snowman ☃"),
        lambda model: model.tokenizer.beginning(text, 3),
        lambda model: model.tokenizer.wrapped(text),
        lambda model: model.tokenizer.marked(model.tokens(text)),
        lambda model: words_of(model.tokenizer, text),
        lambda model: word_cut(model.tokenizer, text, 1),
        lambda model: (model.tokenizer.size, model.tokenizer.start, model.tokenizer.end),
        lambda model: model.tokenizer.is_unigram,
        lambda model: model.generate(text, limit=3),
        lambda model: model.trace(text, record="full"),
    ):
        answers = [_or_refusal(lambda ask=ask, of=of: ask(of)) for of in (one, other)]
        assert list(differences(*answers)) == []


def test_a_query_alone_brings_its_scores_and_leaves_the_vectors_there(
    in_parts: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    part = in_parts.part
    monkeypatch.setattr(
        in_parts, "part", lambda request, path: paths.append(path) or part(request, path)
    )
    for name, change in {"house-gpt": Intervention(), "translate-en-fr": CHANGES["mask"]}.items():
        text = TEXTS[name][0]
        one = here(name).model.trace(text, None, change)
        other = in_parts.trace(Request(name, text, None, change), lambda place: None)
        paths.clear()
        for near, there in zip(one.attention, other.attention, strict=True):
            row, far = (of_query(each, 2) for each in (near, there))
            assert far.sizes == row.sizes
            for stage in ("scores", "scaled", "capped", "biased", "masked", "weights", "dropped"):
                for head in range(row.heads):
                    mine, its = (getattr(each, stage)(head) for each in (row, far))
                    assert mine.tobytes() == its.tobytes(), stage
        assert {path[2] for path in paths} == {"query"}
        assert not any("vectors" in path for path in paths)
        assert far.context(0).tobytes() == row.context(0).tobytes()
        assert far.check() == pytest.approx(row.check(), abs=1e-7)


def test_whatever_may_be_asked_has_the_same_answer_there_and_here(in_parts: ClusterEngine) -> None:
    there = {name: Asked(in_parts.model(name, silent), *texts) for name, texts in TEXTS.items()}
    names, wrong = list(asked_names()), []
    assert len(names) > 60
    for name in names:
        answered = False
        for model, far in there.items():
            answers = [
                _or_refusal(lambda of=of, name=name: _ask(name, of)) for of in (here(model), far)
            ]
            wrong += [f"{name} of {model}: {path}" for path in differences(*answers)]
            answered |= not isinstance(answers[0], ValueError)
        wrong += [] if answered else [f"{name} refuses every model: {answers[0]}"]
    assert wrong == []


def _ask(name: str, of: Asked) -> Any:
    """The answer of a function; of a generator all of them."""
    module, _, path = name.partition(":")
    called: Any = attrgetter(path)(importlib.import_module(module))
    called = called.fget if isinstance(called, property) else called
    given = arguments(name, of)
    assert isinstance(of.model, FarModel) == any(map(_is_remote, given.values()))
    answer = called(**given)
    if name.endswith("window_by_window"):
        return [one[:-1] for one in answer]  # the last are the seconds
    return list(answer) if isinstance(answer, Iterator) else answer


def _or_refusal(call: Any) -> Any:
    try:
        return call()
    except ValueError as refusal:
        return refusal


def _is_remote(argument: Any) -> bool:
    first = argument[0] if isinstance(argument, tuple) and argument else argument
    return isinstance(first, Remote)
