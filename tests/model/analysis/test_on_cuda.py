"""What is asked of a trace has the same answer on a CUDA device as on the processor."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.analysis import edge_values, patch_map, score_parts
from model.analysis.attribution.head_matrices import head_matrices, singular_values
from model.analysis.attribution.patching import PatchedRuns, estimated_map, path_map
from model.analysis.attribution.relevance import relevances
from model.analysis.attribution.score_parts import projected
from model.analysis.heads.contributions import merged
from model.analysis.padded_batch import padded_batch
from model.analysis.stream.feed_forward import training_pass
from tests.cases import cases
from tests.model.tiny import loaded

pytestmark = pytest.mark.cuda
TEXT, OTHER = (f"Tom {name} saw a red ball. Anna gave the ball to Tom" for name in ("Hill", "King"))
PLACE, HEAD, ANSWER = "decoder.1.self", 7, (11, 12)
NEAR = {"rtol": 2e-3, "atol": 2e-3}  # float32 in another order of sums, through four layers


class Runs(NamedTuple):
    model: Model
    trace: Trace
    other: Trace


@pytest.fixture(scope="module")
def devices() -> tuple[Runs, Runs]:
    both = [loaded("house-gpt", device) for device in ("cpu", "cuda")]
    cpu, cuda = (
        Runs(one, *(one.trace(text, record="full") for text in (TEXT, OTHER))) for one in both
    )
    return cpu, cuda


def relevance(runs: Runs) -> np.ndarray:
    *_, last = relevances(runs.model, runs.trace, 11, steps=4)
    return np.stack([last.left_out, last.integrated, last.by_attention])


def padded(runs: Runs) -> np.ndarray:
    _, short = padded_batch(runs.model, TEXT, "Tom Hill saw")
    return short.open[PLACE].weights(HEAD)


def changed(runs: Runs) -> np.ndarray:
    change = Intervention(
        dropout=0.3, weights=frozenset({(PLACE, HEAD, 3, 1, 0.25)}), positions=False
    )
    return runs.model.trace(TEXT, intervention=change).logits


QUESTIONS: dict[str, Callable[[Runs], np.ndarray]] = {
    "parts of a score": lambda runs: score_parts(*runs[:2], PLACE, HEAD, 12, 2).values,
    "edges": lambda runs: edge_values(*runs[:2], PLACE, HEAD).norms,
    "heads through W_O": lambda runs: merged(*runs[:2], PLACE).total,
    "matrices of a head": lambda runs: np.stack(
        singular_values(head_matrices(*runs[:2], PLACE, HEAD))
    ),
    "an entry of a query": lambda runs: projected(*runs[:2], PLACE, HEAD, 5, "query").after,
    "relevance": relevance,
    "patches": lambda runs: patch_map(*runs, answer=ANSWER),
    "patches estimated": lambda runs: estimated_map(PatchedRuns(*runs, "weights"), ANSWER),
    "paths": lambda runs: path_map(*runs, (PLACE, HEAD), answer=ANSWER),
    "a padded batch": padded,
    "a changed run": changed,
}


@cases("question", QUESTIONS)
def test_the_answer_is_that_of_the_processor(question, devices: tuple[Runs, Runs]) -> None:
    expected, found = (QUESTIONS[question](runs) for runs in devices)
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found / size, expected / size, **NEAR)


def test_dropout_in_training_mode_leaves_the_devices_generator_as_it_was() -> None:
    model = loaded("translate-en-fr", "cuda")
    trace = model.trace("the black cat sleeps")
    before = torch.cuda.get_rng_state()
    first, second = (training_pass(model, trace, 3).change for _ in range(2))
    assert torch.equal(torch.cuda.get_rng_state(), before)
    np.testing.assert_array_equal(first, second)
