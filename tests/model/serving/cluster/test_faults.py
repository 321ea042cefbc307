"""A real Ray cluster on this computer: whatever dies, stops or is full, a visitor gets the answer or a
sentence, and nobody else loses anything."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from tests.model.serving.cluster.machines import (  # before Ray is imported
    LIVING,
    SECONDS,
    TRACES,
    Machines,
    Stopped,
    kill,
    remove,
    until,
)

import ray  # isort: skip
from model import load_model
from model.analysis.heads.contributions import ablate_each
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset
from model.serving.cluster import actors, asking
from model.serving.cluster.actors import ClusterError
from model.serving.cluster.asking import ENDED
from model.serving.cluster.cluster_engine import ClusterEngine
from model.serving.cluster.messages import TRACE, Caller, written
from model.serving.engine import Load, Request
from model.system.settings import MEGABYTE
from tools.training.publishing import save_asset

pytestmark = [
    pytest.mark.ray,
    pytest.mark.xdist_group("ray"),  # one cluster for all of them
    pytest.mark.filterwarnings("ignore"),  # of Ray's own
]
NAME, TEXT = "house-gpt", "Tom Hill saw a red ball. Tom"
TOKENS = 1000


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random model of bytes, of which a pass over TOKENS takes seconds."""
    folder = tmp_path_factory.mktemp("models") / "slow"
    tokenizer = GPT2Subset(range(0))
    config = TransformerConfig(
        "decoder", tokenizer.size, TOKENS, 256, 4, decoder_layers=48, d_mlp=1024
    )
    torch.manual_seed(0)
    save_asset(folder, Transformer(config), tokenizer, card={"title": "Slow"})
    return str(folder)


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return load_model(NAME).trace(TEXT).attention[1].weights(0)


def weights(engine: ClusterEngine, text: str = TEXT) -> np.ndarray:
    found: np.ndarray = engine.trace(Request(NAME, text), nobody).attention[1].weights(0)
    return found


def nobody(place: int) -> None:
    """Is told the place in the queue."""


def process_of(engine: ClusterEngine, model: str = NAME) -> int:
    return load_of(engine, model).process


def load_of(engine: ClusterEngine, model: str = NAME) -> Load:
    def found() -> Load | None:
        return next((one for one in engine.loads() if one.model == model), None)

    load: Load = until(found, f"{model} is loaded")
    return load


def under_way(engine: ClusterEngine, model: str) -> bool:
    return any(one.under_way for one in engine.loads() if one.model == model)


def beside(call: Callable[[], Any]) -> Future[Any]:
    """The call, in a thread of its own."""
    return ThreadPoolExecutor(1).submit(call)


def asked_of(engine: ClusterEngine, model: str = NAME) -> bool:
    """Whether this app waits for an actor of a model."""
    _, known = engine._actors._known.get(model, (0.0, []))
    return any(actor.under_way for actor in known)


def test_a_pass_whose_actor_is_killed_is_made_again(
    replica: Callable[..., ClusterEngine], expected: np.ndarray
) -> None:
    engine = replica()
    weights(engine, "The cat sat")
    process = process_of(engine)
    with Stopped(process):  # in the middle of whatever it does
        answer = beside(lambda: weights(engine))
        until(lambda: asked_of(engine), "the pass is asked")
        kill(process)
    assert np.array_equal(answer.result(), expected)
    assert process_of(engine) != process


def test_a_computation_step_by_step_whose_actor_is_killed_ends_with_a_sentence(
    replica: Callable[..., ClusterEngine], expected: np.ndarray
) -> None:
    engine = replica()
    model = engine.model(NAME, lambda sentence, share: None)
    trace = engine.trace(Request(NAME, TEXT), nobody)
    steps = ablate_each(model, trace, (2, 3), nullcontext)
    assert next(steps).done > 0
    kill(process_of(engine))
    with pytest.raises(ClusterError) as raised:
        list(steps)
    assert str(raised.value) == ENDED
    assert np.array_equal(weights(replica()), expected)  # it has begun anew for everybody


def test_an_actor_that_stands_still_is_a_sentence_and_goes_on_afterwards(
    replica: Callable[..., ClusterEngine], expected: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replica()
    weights(engine, "The cat sat")
    monkeypatch.setattr(asking, "SECONDS_SILENT", 0.5)
    monkeypatch.setattr(asking, "SECONDS_TO_COME_BACK", 2)
    process = process_of(engine)
    with Stopped(process), pytest.raises(ClusterError, match="cannot be reached now"):
        weights(engine)
    monkeypatch.undo()
    assert np.array_equal(weights(engine), expected)
    assert process_of(engine) == process


def test_a_model_that_no_machine_could_hold_is_refused_at_once(
    replica: Callable[..., ClusterEngine],
) -> None:
    engine = replica(LIVING._replace(trace_bytes=2000 * MEGABYTE))
    with pytest.raises(ClusterError, match=r"stories needs 2,\d\d\d MB .* Choose a smaller model"):
        engine.model("stories", lambda sentence, share: None)
    assert not any(one.model == "stories" for one in engine.loads())


class LeftError(Exception):
    """The visitor has left."""


def test_a_visitor_who_leaves_ends_the_pass(
    replica: Callable[..., ClusterEngine], slow: str
) -> None:
    left, other = threading.Event(), replica()

    def wanted() -> None:
        if left.is_set():
            raise LeftError

    engine = replica(wanted=wanted)
    engine.model(slow, lambda sentence, share: None)
    answer = beside(lambda: engine.trace(Request(slow, "x" * TOKENS), nobody))
    until(lambda: under_way(other, slow), "the pass is under way")
    left.set()
    with pytest.raises(LeftError):
        answer.result()
    until(lambda: not under_way(other, slow), "the pass has ended")
    assert load_of(other, slow).passes == 0
    assert len(other.trace(Request(slow, "free"), nobody).tokens) == 4
    unload(slow)


def test_a_replica_that_dies_takes_its_passes_along(
    replica: Callable[..., ClusterEngine], slow: str
) -> None:
    """It asks, and never again for its place: that is all that an actor sees of it."""
    engine = replica(LIVING._replace(unseen_seconds=0.5))
    engine.model(slow, lambda sentence, share: None)
    handle = engine._actors.of(slow, None).handle
    request = Request(slow, "y" * TOKENS)
    answer = handle.answer.remote(
        Caller("ticket", "gone"), written((TRACE, {"request": request}), lambda value: None)
    )
    assert ray.get(answer).kind == "left"
    assert load_of(engine, slow).passes == 0
    assert load_of(engine, slow).under_way == 0
    unload(slow)


def unload(model: str) -> None:
    """Ends the actor of a model."""
    ray.kill(ray.get_actor(f"{model}#0", actors.NAMESPACE))


def test_a_model_that_rests_is_unloaded_and_begins_again_when_it_is_asked(
    replica: Callable[..., ClusterEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "SECONDS_KNOWN", 0)
    engine = replica(LIVING._replace(idle_seconds=0.5))
    engine.trace(Request("induction", "a b c"), nobody)
    before = load_of(engine, "induction").process
    until(lambda: not any(one.model == "induction" for one in engine.loads()), "it is unloaded")
    engine.trace(Request("induction", "a b d"), nobody)
    assert load_of(engine, "induction").process != before
    unload("induction")


def test_room_is_made_for_a_model_where_no_machine_has_it(
    replica: Callable[..., ClusterEngine], expected: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is free on all machines together would be enough."""
    for name, seconds in (("SECONDS_OF_USE", 0), ("SECONDS_KNOWN", 0.5)):
        monkeypatch.setattr(actors, name, seconds)
    engine = replica()
    assert np.array_equal(weights(engine), expected)
    until(lambda: begun("") == [f"{NAME}#0"], "no other model has room")
    needed = 1600 * MEGABYTE - engine._actors._needs(NAME) + 50 * MEGABYTE
    traces = TRACES + needed - engine._actors._needs("stories")
    large = replica(LIVING._replace(trace_bytes=traces))
    large.trace(Request("stories", "Once upon a time"), nobody)
    assert begun("") == ["stories#0"]
    unload("stories")
    assert np.array_equal(weights(replica()), expected)


def test_two_actors_of_a_model_share_its_visitors(
    replica: Callable[..., ClusterEngine], expected: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "BUSY", 1)
    monkeypatch.setattr(actors, "SECONDS_KNOWN", 0.2)
    monkeypatch.setattr(asking, "SECONDS_SILENT", SECONDS)  # nobody gives the first one up
    engine = replica(copies=2)
    weights(engine, "The cat sat")
    with Stopped(process_of(engine)):
        waiting = beside(lambda: weights(engine, "Anna saw a dog"))
        until(lambda: asked_of(engine), "the first actor has something to do")
        also = beside(lambda: weights(engine, "Tom saw a dog"))
        until(lambda: engine._actors.of(NAME, object()).number == 1, "a second one has begun")
        assert np.array_equal(beside(lambda: weights(engine)).result(), expected)
        assert not waiting.done()
    model = load_model(NAME)
    for answer, text in ((waiting, "Anna saw a dog"), (also, "Tom saw a dog")):
        assert np.array_equal(answer.result(), model.trace(text).attention[1].weights(0))
    ray.kill(ray.get_actor(f"{NAME}#1", actors.NAMESPACE))


def begun(model: str) -> list[str]:
    """The actors of models whose name begins so, by name."""
    found = ray.util.list_named_actors(all_namespaces=True)
    return [one["name"] for one in found if one["name"].startswith(model)]


def test_the_models_of_a_machine_that_is_removed_begin_on_another(
    machines: Machines, replica: Callable[..., ClusterEngine], expected: np.ndarray
) -> None:
    engine = replica()
    weights(engine, "The cat sat")
    before = load_of(engine)
    machines.start(1600)
    remove(machines.started[1], before.process)
    assert np.array_equal(weights(engine), expected)
    assert load_of(engine).process != before.process
