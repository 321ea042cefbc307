"""Token by token: greedy by hand, sampling by its law, and what the model wrote read as it is."""

import numpy as np
import pytest
import torch

from model import Model
from model.analysis.tokens.live_writing import Choice, drawn, uniform, written
from model.analysis.tokens.prediction import Sampling
from model.serving.engine import Engine, Request
from tests.model.tiny import loaded, of_shape, sentence

GREEDY = Choice(Sampling())


def last_logits(model: Model, text: str, ids: tuple[int, ...]) -> np.ndarray:
    """Logits after a text and what was written so far, by a pass that keeps nothing."""
    device, start = model.device, model.tokenizer.start
    read = torch.tensor([[token.id for token in model.tokens(text)]], device=device)
    more = torch.tensor([list(ids)], dtype=torch.long, device=device)
    if model.config.shape == "encoder-decoder":
        begin = torch.tensor([[start]], device=device)
        return model.module(read, torch.cat([begin, more], 1))[0, -1].cpu().numpy()
    return model.module(torch.cat([read, more], 1))[0, -1].cpu().numpy()


def traced_logits(model: Model, text: str, ids: tuple[int, ...]) -> np.ndarray:
    target = "" if model.config.shape == "encoder-decoder" else None
    logits = model.trace(text, target, continued=ids).logits
    return logits[-1]


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_greedy_steps_over_traces_are_the_argmax_of_fresh_passes(model: Model) -> None:
    text, end = sentence(model), model.tokenizer.end
    by_hand: list[int] = []
    while len(by_hand) < 4 and (not by_hand or by_hand[-1] != end):
        by_hand.append(int(last_logits(model, text, tuple(by_hand)).argmax()))
    steps = written(
        lambda ids: GREEDY.of(traced_logits(model, text, ids), len(ids)), steps=4, end=end
    )
    assert list(steps) == by_hand
    assert [token.id for token in model.generate(text, limit=4)] == by_hand


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_a_continued_trace_reads_exactly_the_ids_that_were_written(model: Model) -> None:
    text = sentence(model)
    ids = tuple(int(id_) for id_ in np.random.default_rng(0).integers(2, model.tokenizer.size, 3))
    target = "" if model.config.shape == "encoder-decoder" else None
    trace = model.trace(text, target, continued=ids)
    assert tuple(token.id for token in trace.tokens_of("decoder"))[-3:] == ids
    np.testing.assert_allclose(
        trace.logits[-1], last_logits(model, text, ids), atol=1e-4, rtol=1e-4
    )


def test_what_a_model_cannot_have_written_is_refused() -> None:
    with pytest.raises(ValueError, match="does not continue"):
        loaded("bert").trace("the cat", continued=(1,))
    with pytest.raises(ValueError, match="none has the id 999999"):
        loaded("gpt").trace("the cat", continued=(999_999,))
    with pytest.raises(ValueError, match="reads at most 16"):
        loaded("gpt").trace("the cat", continued=(3,) * 15)


def test_two_continuations_are_two_requests() -> None:
    engine = Engine()
    traces = [
        engine.trace(Request("stories", "Tom saw", continued=ids), lambda place: None)
        for ids in ((), (5,), (5, 7), (5,))
    ]
    assert [len(trace.tokens) for trace in traces] == [2, 3, 4, 3]
    assert traces[1] is traces[3]


def test_writing_stops_at_the_end_token_and_at_the_limit() -> None:
    order = [3, 1, 4, 0, 2]

    def choose(ids: tuple[int, ...]) -> int:
        return order[len(ids)]

    assert written(choose, steps=5, end=4) == (3, 1, 4)
    assert written(choose, steps=2, end=4) == (3, 1)
    assert written(choose, steps=5, end=None) == (3, 1, 4, 0, 2)
    assert written(choose, steps=0, end=None) == ()


def test_tokens_are_drawn_as_often_as_their_share_says() -> None:
    shares = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    points = [uniform(seed, step) for seed in range(40) for step in range(100)]
    counts = np.bincount([drawn(shares, point) for point in points], minlength=5) / len(points)
    np.testing.assert_allclose(counts, shares, atol=0.03)
    assert counts[1] == counts[4] == 0
    assert drawn(shares, 0.0) == 0
    assert drawn(shares, np.nextafter(1.0, 0)) == 3


def test_a_seed_repeats_its_text_and_another_seed_writes_another() -> None:
    model = loaded("stories")

    def text(seed: int | None, top_k: int | None = None) -> tuple[int, ...]:
        choice = Choice(Sampling(2.0, top_k), seed)
        return written(
            lambda ids: choice.of(traced_logits(model, "Tom Hill saw", ids), len(ids)),
            steps=8,
            end=None,
        )

    assert text(1) == text(1)
    assert len({text(seed) for seed in range(4)}) > 1
    assert text(3, 1) == text(None)
