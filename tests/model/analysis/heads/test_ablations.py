"""All heads left out in turn, in batches: each row is the pass without that one head."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.analysis.heads.contributions import Ablations, ablate_each
from model.analysis.tokens.prediction import divergence, probabilities
from model.run import passes
from tests.model.tiny import loaded, run

WATCHED = (3, 5)


def whole(model: Model, trace: Trace, watched: tuple[int, ...] = WATCHED) -> Ablations:
    *_, last = ablate_each(model, trace, watched, nullcontext)
    return last


def watched_of(trace: Trace) -> tuple[int, ...]:
    return () if trace.logits is None else WATCHED


def loss(trace: Trace) -> float:
    following = [token.id for token in trace.tokens_of("decoder")[1:]]
    rows = torch.tensor(np.array(trace.logits[: len(following)]))
    return float(torch.nn.functional.cross_entropy(rows, torch.tensor(following)))


def test_each_row_is_the_pass_with_that_head_ablated(model: Model) -> None:
    trace = run(model)
    found = whole(model, trace, watched_of(trace))
    assert found.complete
    assert set(found.heads) == {(one.name, h) for one in trace.attention for h in range(one.heads)}
    for place, head in list(enumerate(found.heads))[:: max(len(found.heads) // 6, 1)]:
        alone = run(model, Intervention(ablated=frozenset({head})))
        if trace.logits is None:
            last, before = alone.residual["encoder"][-1], trace.residual["encoder"][-1]
            if model.config.norm_place == "pre":
                last, before = alone.norms[-1].output, trace.norms[-1].output
            apart = np.linalg.norm(last - before, axis=-1) / np.linalg.norm(before, axis=-1)
            assert found.measures["moved"][place] == pytest.approx(apart.mean(), abs=1e-5)
            continue
        after = probabilities(alone.logits[-1])
        assert found.measures["logit"][place] == pytest.approx(alone.logits[-1][[3, 5]], abs=1e-4)
        assert found.measures["probability"][place] == pytest.approx(after[[3, 5]], abs=1e-5)
        assert found.measures["loss"][place] == pytest.approx(loss(alone), abs=1e-4)
        apart = divergence(trace.logits[-1], alone.logits[-1])
        assert found.measures["divergence"][place] == pytest.approx(apart, abs=1e-4)


def test_the_unchanged_measures_are_those_of_the_trace() -> None:
    model = loaded("gpt")
    trace = run(model)
    found = whole(model, trace)
    assert found.unchanged["logit"] == pytest.approx(trace.logits[-1][[3, 5]], abs=1e-5)
    assert found.unchanged["loss"] == pytest.approx(loss(trace), abs=1e-5)
    assert found.unchanged["divergence"] == 0
    change = found.change("logit", 1)
    np.testing.assert_allclose(change, found.measures["logit"][:, 1] - found.unchanged["logit"][1])
    assert np.abs(change).max() > 1e-3


def test_the_interventions_of_the_run_hold_in_every_pass() -> None:
    model = loaded("gpt")
    change = Intervention(mask="none", ablated=frozenset({("decoder.0.self", 0)}))
    found = whole(model, run(model, change))
    both = Intervention(mask="none", ablated=frozenset({("decoder.0.self", 0), found.heads[4]}))
    assert found.measures["logit"][4] == pytest.approx(
        run(model, both).logits[-1][[3, 5]], abs=1e-4
    )
    assert found.change("loss")[0] == pytest.approx(0, abs=1e-6)


def test_news_after_each_batch_in_a_turn_of_its_own_and_stopping_leaves_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[str] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append("in")
        yield
        turns.append("out")

    monkeypatch.setattr(passes, "MOST_ROWS", 2)
    model = loaded("gpt")  # 2 layers of 3 heads
    news = ablate_each(model, run(model), WATCHED, turn)
    first = next(news)
    assert turns == ["in", "out"] * 2  # the unchanged pass and the first batch
    assert not first.complete
    assert len(first.heads) == 2
    counts = [len(more.heads) for more in news]
    assert counts == [4, 6]


def test_one_token_has_a_next_token_but_no_loss() -> None:
    model = loaded("gpt")
    found = whole(model, model.trace("cat"))
    assert "loss" not in found.measures
    assert np.isfinite(found.measures["probability"]).all()
