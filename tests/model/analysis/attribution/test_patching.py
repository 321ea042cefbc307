"""Parts of one run put into another: nothing changes nothing, everything gives the other run."""

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.analysis import patch_map
from model.analysis.attribution.patching import WHATS, PatchedRuns
from model.run import passes
from model.trace.arrays import Array
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import TINY, loaded, of_shape, run

ANSWER = (3, 7)


def two_runs(model: Model, other: tuple[int, ...] = (2, 6, 3, 2, 5)) -> tuple[Trace, Trace]:
    """Two runs over as many tokens, the first and the last of them the same."""
    target = model.tokenizer.named((2, 4) if model.config.shape == "encoder-decoder" else ())
    (one, _), (two, _) = (
        model.passed(model.tokenizer.named(ids), target, record="full")
        for ids in ((2, 3, 4, 2, 5), other)
    )
    return one, two


def logits(model: Model, ended: torch.Tensor) -> Array:
    """(token, vocabulary) of what a pass of one row ended with, made as the model makes them."""
    with torch.inference_mode():
        made = ended if model.module.output_matrix is None else model.module.logits(ended)
    return made[0].numpy()


def hold_at_both_ends(model: Model) -> None:
    a, b = two_runs(model)
    assert not np.array_equal(a.logits, b.logits)
    for what in WHATS if a.feed_forward else WHATS[:-1]:
        runs = PatchedRuns(model, a, b, what, a.attention[-1].name)
        np.testing.assert_array_equal(logits(model, runs.run([()])), a.logits)
        np.testing.assert_array_equal(logits(model, runs.theirs), b.logits)
    runs = PatchedRuns(model, a, b, "stream")
    np.testing.assert_array_equal(logits(model, runs.run([runs.all])), b.logits)
    start = [spot for spot in runs.all if spot.name == runs.all[0].name]
    for spots, trace in (((), a), (start, b)):  # a batch rounds as a batch of that run does
        together, alone = runs.run([spots] * 3), runs.passed(trace, rows=3)
        np.testing.assert_array_equal(together.numpy(), alone.numpy())


@cases("name", of_shape("decoder", "encoder-decoder", among=TINY))
def test_nothing_gives_run_a_and_everything_run_b_bit_for_bit(name) -> None:
    hold_at_both_ends(loaded(name))


WRITING = [name for name in hub_models.FAMILIES if "bert" not in name and name != "mpnet"]


@pytest.mark.slow
@cases("family", [*WRITING, "openai-gpt"])
def test_nothing_gives_run_a_and_everything_run_b_in_every_family(family) -> None:
    hold_at_both_ends(hub_models.loaded(family))


@cases("name", ["gpt", "llama", "gpt-post", "translator"])
def test_the_head_that_alone_differs_gives_the_other_run(name) -> None:
    """Run B is run A without one head of the last layer."""
    model = loaded(name)
    last = run(model).attention[-1].name
    a, b = run(model), run(model, Intervention(ablated=frozenset({(last, 1)})))
    shares = patch_map(model, a, b, "head", answer=ANSWER)
    assert shares.shape == (len(a.attention), 3)
    expected = np.zeros_like(shares)
    expected[-1, 1] = 1
    np.testing.assert_allclose(shares, expected, atol=1e-3)


def test_the_token_that_alone_differs_gives_the_other_run_and_those_before_it_nothing() -> None:
    model = loaded("gpt")
    a, b = two_runs(model, (2, 3, 4, 2, 6))
    stream = patch_map(model, a, b, "stream", answer=ANSWER)
    assert stream.shape == (2, 5)
    expected = np.zeros_like(stream)
    expected[:, 4] = 1  # the last token alone carries what differs, and it is the one that answers
    np.testing.assert_allclose(stream, expected, atol=1e-3)
    writes = patch_map(model, a, b, "feed_forward", answer=ANSWER)
    assert (np.abs(writes[:, :4]) < 1e-3).all()
    assert (np.abs(writes[:, 4]) > 1e-2).all()


@cases("what", WHATS)
def test_a_batch_gives_what_each_patch_gives_alone(what) -> None:
    model = loaded("llama")
    a, b = two_runs(model)
    runs = PatchedRuns(model, a, b, what, a.attention[0].name)
    together = runs.run([(patch,) for patch in runs.all])
    for row, patch in enumerate(runs.all):
        torch.testing.assert_close(together[row], runs.run([(patch,)])[0], rtol=1e-4, atol=1e-5)
    assert len({float(one[-1].sum()) for one in together}) > 2  # and they differ


def test_what_is_not_done_yet_is_left_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS", 2)
    model = loaded("gpt")
    maps = list(PatchedRuns(model, *two_runs(model), "head").shares(ANSWER))
    assert [int(np.isnan(one).sum()) for one in maps] == [4, 3, 1, 0]
    np.testing.assert_array_equal(maps[1][0], maps[-1][0])


def test_runs_that_cannot_be_laid_over_each_other_are_refused() -> None:
    model = loaded("gpt")
    a, b = two_runs(model)
    longer = model.trace("the cat saw the cat on the mat")
    with pytest.raises(ValueError, match="5 tokens and the other 8"):
        patch_map(model, a, longer, answer=ANSWER)
    with pytest.raises(ValueError, match="the same answer"):
        patch_map(model, a, a, answer=ANSWER)
    with pytest.raises(ValueError, match="none has the id 999"):
        patch_map(model, a, b, answer=(3, 999))
    with pytest.raises(ValueError, match="of llama, not of gpt"):
        patch_map(model, a, run(loaded("llama")), answer=ANSWER)
    bare = loaded("attention-only")
    with pytest.raises(ValueError, match="no feed-forward"):
        patch_map(bare, *two_runs(bare), "feed_forward", answer=ANSWER)
    encoder = loaded("bert")
    with pytest.raises(ValueError, match="predicts no next token"):
        patch_map(encoder, run(encoder), run(encoder), answer=ANSWER)


def test_dropout_falls_alike_on_every_row_of_a_batch() -> None:
    """Else what a patch moves would be noise."""
    model, drops = loaded("gpt"), Intervention(dropout=0.3)
    a, b = (
        model.passed(model.tokenizer.named(ids), (), drops)[0] for ids in ((2, 3, 4), (2, 5, 4))
    )
    rows = PatchedRuns(model, a, b, "head").run([()] * 3).numpy()
    np.testing.assert_allclose(rows, rows[:1].repeat(3, 0), rtol=1e-5, atol=1e-6)
    assert not np.array_equal(a.attention[0].dropped(0), a.attention[0].weights(0))
