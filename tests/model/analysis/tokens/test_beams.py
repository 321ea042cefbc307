"""Beam search: beside a search over all continuations, `generate`, and passes one by one."""

from itertools import product

import pytest
import torch

from model import Model
from model.analysis.tokens.live_writing import BeamSearch, beam_search
from tests.model import hub_models
from tests.model.tiny import loaded, of_shape, run

TEXTS = "the cat saw the"


def searched(model: Model, beams: int, steps: int) -> BeamSearch:
    *_, found = beam_search(model, model.trace(TEXTS), beams=beams, steps=steps)
    return found


def rows_after(model: Model, written: list[list[int]]) -> torch.Tensor:
    """(R, V): PyTorch's log-softmax after each of these texts."""
    count = len(written)
    read = model.ids(model.tokens(TEXTS)).expand(count, -1)
    more = torch.tensor(written, dtype=torch.long).reshape(count, -1)
    if model.config.shape == "encoder-decoder":
        fed = [read, torch.cat([torch.full((count, 1), model.tokenizer.start), more], 1)]
    else:
        fed = [torch.cat([read, more], 1)]
    with torch.inference_mode():
        return model.module(*fed)[:, -1].double().log_softmax(-1)


def all_continuations(model: Model, steps: int) -> dict[tuple[int, ...], float]:
    """Every text of so many tokens, or up to and with the end mark, with its log-probability."""
    ids, end = range(model.config.d_vocab), model.tokenizer.end
    totals: dict[tuple[int, ...], float] = {(): 0.0}
    for step in range(steps):
        alive = [list(one) for one in totals if len(one) == step and end not in one]
        rows = rows_after(model, alive).tolist()
        for (text, row), id_ in product(zip(alive, rows, strict=True), ids):
            totals[(*text, id_)] = totals[tuple(text)] + row[id_]
        for text in alive:
            del totals[tuple(text)]
    return totals


def test_with_enough_beams_it_finds_what_a_search_over_all_texts_finds(
    subtests: pytest.Subtests,
) -> None:
    for name in ["gpt", "llama", "translator"]:
        with subtests.test(name=name):
            model = loaded(name)
            everything = all_continuations(model, 3)
            found = searched(model, model.config.d_vocab**2, 3)
            ranked = sorted(everything.items(), key=lambda text: -text[1])
            assert found.best.ids == ranked[0][0]
            assert [one.total for one in found.steps[-1].kept] == pytest.approx(
                [total for _, total in ranked[: len(found.steps[-1].kept)]], abs=1e-5
            )
            assert any(one.ended and len(one.ids) < 3 for one in found.steps[-1].kept)


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_greedy_is_generate_and_totals_are_those_of_separate_passes(model: Model) -> None:
    trace = run(model)
    *_, found = beam_search(model, trace, beams=3, steps=4)
    written = model.generate(trace.text, limit=4)
    assert found.greedy.ids == tuple(token.id for token in written)
    assert len(found.steps[-1].kept) == len(found.steps[-1].dropped) == 3
    for step in found.steps:
        for one in (*step.kept, *step.dropped, step.greedy):
            logs = [separate(model, trace.text, one.ids[:at], one.ids[at])
                    for at in range(len(one.ids))]  # fmt: skip
            # A row of a batch is not added up in the order of a pass of its own.
            assert one.total == pytest.approx(sum(logs), rel=1e-5, abs=1e-5)
            assert one.log_probability == pytest.approx(logs[-1], rel=1e-5, abs=1e-5)


def test_a_target_begins_with_what_its_tokenizer_adds() -> None:
    """BART's start token, and then the tokenizer's <s>, as in every trace of a target."""
    model = hub_models.loaded("bart")
    *_, found = beam_search(model, model.trace(TEXTS, ""), beams=2, steps=2)
    logs = [
        separate(model, TEXTS, found.best.ids[:at], id_) for at, id_ in enumerate(found.best.ids)
    ]
    assert found.best.total == pytest.approx(sum(logs), abs=1e-5)


def separate(model: Model, text: str, before: tuple[int, ...], id_: int) -> float:
    """The log-probability of a token, by a recorded pass of its own."""
    target = "" if model.config.shape == "encoder-decoder" else None
    logits = model.trace(text, target, continued=before).logits
    return float(torch.tensor(logits[-1]).double().log_softmax(-1)[id_])


def test_each_step_keeps_the_best_of_all_that_follows_what_was_kept() -> None:
    model = loaded("gpt")
    before: list[list[int]] = [[]]
    totals = [0.0]
    for step in searched(model, 2, 4).steps:
        sums = rows_after(model, before) + torch.tensor(totals)[:, None]
        best = sums.flatten().topk(4)
        size = model.config.d_vocab
        texts = [(*before[at // size], at % size) for at in best.indices.tolist()]
        assert [one.ids for one in (*step.kept, *step.dropped)] == texts
        before, totals = [list(text) for text in texts[:2]], best.values[:2].tolist()


def test_an_encoder_and_a_search_that_cannot_be_are_refused() -> None:
    encoder, model = loaded("bert"), loaded("gpt")
    with pytest.raises(ValueError, match="is an encoder"):
        next(beam_search(encoder, encoder.trace(TEXTS), beams=2, steps=1))
    with pytest.raises(ValueError, match="a beam and a step"):
        next(beam_search(model, model.trace(TEXTS), beams=0, steps=1))
    room = model.config.n_ctx - 4 + 1
    with pytest.raises(ValueError, match="Shorten it"):
        next(beam_search(model, model.trace(TEXTS), beams=2, steps=room + 1))
    *_, found = beam_search(model, model.trace(TEXTS), beams=2, steps=room)
    assert found.done == found.total == room
