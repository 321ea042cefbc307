"""Checkpoints: the weights of their step, one text read at all of them, and how far they moved."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from model import Model
from model.analysis.heads.statistics import after_the_same, at_offset, mean_share
from model.analysis.heads.statistics import induction as induction_score
from model.loading.shipped import ASSETS, checkpoint_file, load_asset
from model.training.checkpoints import (
    Archive,
    TrainingRun,
    shipped_training_run,
    shipped_training_runs,
)
from tests.cases import cases

LIST = "k 3 f z a 5 q m b x k 3 f z a 5 q m b x"
STORY_LIST = "cat dog mat hat cup ball book tree house car " * 2
TEXTS = {
    "induction": LIST,
    "stories": "Anna King met Sam Gray near the river",
    "translate-en-fr": "the black cat sleeps",
}


@pytest.fixture(scope="module")
def archive() -> Archive:
    return Archive()


@cases("name", TEXTS)
def test_a_player_holds_what_each_checkpoint_itself_computes(name, archive: Archive) -> None:
    training_run = shipped_training_run(name)
    traces = archive.traces(training_run, TEXTS[name])
    assert traces.steps == training_run.steps
    assert traces.unread == 0
    assert traces.check < 1e-4
    said = tuple(token.id for token in traces.last.target_tokens[1:])
    for at, step in enumerate(training_run.steps):
        model = Model(name, *load_asset(ASSETS / name, checkpoint_file(step))[:2])
        trace = model.trace(TEXTS[name], "" if said else None, continued=said, explicit=True)
        for attention in trace.attention:
            for head in range(attention.heads):
                shown = traces.weights(attention.name, head)[at]
                np.testing.assert_allclose(shown, attention.weights(head), atol=2e-6)


def test_the_last_checkpoint_is_the_shipped_model_and_the_first_is_not(archive: Archive) -> None:
    for name in shipped_training_runs():
        training_run = shipped_training_run(name)
        shipped = load_asset(ASSETS / name)[0].state_dict()
        for step, same in ((training_run.steps[0], False), (training_run.steps[-1], True)):
            state = archive.model(training_run, step).module.state_dict()
            assert all(value.equal(shipped[key]) for key, value in state.items()) is same


@cases("name", ["induction", "stories"])
def test_the_stripe_of_the_head_that_matters_comes_from_nothing(name, archive: Archive) -> None:
    training_run = shipped_training_run(name)
    text = LIST if name == "induction" else STORY_LIST
    traces = archive.traces(training_run, text)
    place, head = training_run.head("induction")
    cells = after_the_same([token.id for token in traces.keys(place)])
    stripe = mean_share(traces.weights(place, head), cells)
    assert stripe[0] < 0.1
    assert stripe[-1] >= 0.8
    place, head = training_run.head("previous_token")
    before = np.diagonal(traces.weights(place, head), -1, 1, 2).mean(-1)
    assert before[0] < 0.4
    assert before[-1] >= 0.9


def test_mean_shares_are_the_scores_of_the_heads() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(20), size=(3, 20)).astype(np.float32)
    twice = mean_share(weights, after_the_same([*range(10), *range(10)]))
    np.testing.assert_allclose(twice, [induction_score(one, 10) for one in weights], rtol=1e-5)
    before = mean_share(weights, np.eye(20, k=-1, dtype=bool))
    np.testing.assert_allclose(before, [at_offset(one, -1) for one in weights], rtol=1e-5)


def test_a_token_looks_at_everything_that_followed_it_before() -> None:
    cells = after_the_same([5, 6, 5, 7, 5])
    assert [tuple(cell) for cell in np.argwhere(cells)] == [(2, 1), (4, 1), (4, 3)]
    alone = after_the_same(["a", "a", "b"])  # what followed the first "a" is the second itself
    assert not alone.any()
    with pytest.raises(ValueError, match="No row has a cell"):
        mean_share(np.eye(3, dtype=np.float32), alone)


def test_weights_move_from_nothing_as_far_as_recomputed_by_hand(archive: Archive) -> None:
    training_run = shipped_training_run("induction")
    movement = archive.movement(training_run)
    assert movement.since_start.shape == (len(training_run.steps), len(movement.parts))
    assert (movement.since_start[0] == 0).all()
    assert (movement.since_last[1] == movement.since_start[1]).all()
    assert (movement.since_last[1:] > 0).all()
    tables = [
        archive.model(training_run, step).embedding
        for step in (training_run.steps[i] for i in (0, 2, 3))
    ]
    column, length = movement.parts.index("embedding.tokens"), np.linalg.norm(tables[0])
    gone, last = (np.linalg.norm(tables[2] - tables[at]) / length for at in (0, 1))
    assert movement.since_start[3, column] == pytest.approx(gone, rel=1e-5)
    assert movement.since_last[3, column] == pytest.approx(last, rel=1e-5)


def test_each_weight_belongs_to_one_part_and_norms_to_their_sub_layer(archive: Archive) -> None:
    parts = archive.movement(shipped_training_run("translate-en-fr")).parts
    assert "decoder.1.cross" in parts
    assert "encoder.0.feed_forward" in parts
    assert not any("norm" in part for part in parts)  # post-norm: no final one


def test_a_long_text_is_read_as_far_as_it_goes_and_a_foreign_one_refused(archive: Archive) -> None:
    training_run = shipped_training_run("stories")
    long = "the cat saw the dog. " * 60
    traces, whole = archive.traces(training_run, long), archive.model(training_run, 0).tokens(long)
    assert traces.last.tokens == whole[:128]
    assert traces.unread == len(whole) - 128
    with pytest.raises(ValueError, match="does not know"):
        archive.traces(shipped_training_run("induction"), "the cat")
    with pytest.raises(ValueError, match="no text"):
        archive.traces(training_run, "  ")
    with pytest.raises(ValueError, match="with checkpoints"):
        shipped_training_run("nothing")


def test_passes_are_made_once_in_their_turn_and_bounded_in_bytes() -> None:
    turns: list[int] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append(1)
        yield

    training_run = shipped_training_run("induction")
    archive = Archive(turn=turn)
    first, again = (archive.traces(training_run, LIST) for _ in range(2))
    assert len(turns) == len(training_run.steps)
    assert again.checkpoints == first.checkpoints
    small = Archive(model_bytes=10, trace_bytes=10)  # nothing fits
    assert (
        small.traces(training_run, LIST).checkpoints[0]
        is not small.traces(training_run, LIST).checkpoints[0]
    )


def test_a_training_run_is_read_only_when_it_is_asked_for() -> None:
    asked: list[int] = []
    shipped = shipped_training_run("induction")

    def model(step: int) -> Model:
        asked.append(step)
        return shipped.model(step)

    training_run = TrainingRun("counted", shipped.history, shipped.heads, shipped.steps, model)
    assert asked == []
    Archive().traces(training_run, LIST)
    assert sorted(asked) == list(training_run.steps)
