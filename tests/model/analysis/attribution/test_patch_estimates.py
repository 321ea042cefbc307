"""The estimate from one gradient, and patches along one path, each against a way of its own."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

from model import Model, Trace
from model.analysis import patch_map
from model.analysis.attribution.patching import (
    READS,
    WHATS,
    PatchedRuns,
    agreement,
    estimated_map,
    path_map,
)
from tests.cases import cases
from tests.model import hub_models
from tests.model.analysis.attribution.test_patching import ANSWER, two_runs
from tests.model.tiny import loaded


def nudged(model: Model, a: Trace, b: Trace, runs: PatchedRuns, size: float) -> list[float]:
    """The slope of the answer, measured with a small step from run A towards run B at each spot."""
    start, end = runs.answers(ANSWER)
    found: list[float] = []
    for spot in runs.all:
        kind, name = next(iter(runs.points_of([spot])))
        theirs = runs.kept[kind, name]
        if runs.what == "weights":  # those of run B, on the values of run A
            kind = "output"
            theirs = torch.tensor(b.find(name).weights() @ a.find(name).value)[None]

        def nudge(x, spot=spot, theirs=theirs, *, step):
            moved, head, token = x.clone(), spot.head, spot.token
            cells = (
                0,
                slice(None) if head is None else head,
                slice(None) if token is None else token,
            )
            cells = cells if x.ndim == 4 else (0, cells[2])
            moved[cells] += step * (theirs[cells] - x[cells])
            return moved

        less, more = (
            runs.answer_of(runs.passed(a, {(kind, name): partial(nudge, step=step)}), ANSWER)[0]
            for step in (-size, size)
        )
        found.append((more - less) / (end - start) / size / 2)
    return found


@cases("name, what", product(["gpt", "llama", "translator"], WHATS))
def test_the_estimate_is_the_slope_of_the_answer_towards_the_other_run(name, what) -> None:
    model = loaded(name)
    a, b = two_runs(model)
    runs = PatchedRuns(model, a, b, what, a.attention[0].name)
    estimate = estimated_map(runs, ANSWER)
    slopes = np.array(nudged(model, a, b, runs, 1e-2)).reshape(estimate.shape)
    np.testing.assert_allclose(estimate, slopes, rtol=0.1, atol=5e-3)
    assert np.ptp(estimate) > 1e-2


@cases("family", ["gpt2", "llama", "opt", "mistral", "bart"])
def test_an_estimate_is_made_of_every_map_of_a_hub_model(family) -> None:
    """Where heads share keys and values too."""
    model = hub_models.loaded(family)
    a, b = two_runs(model)
    for what in WHATS:
        estimate = estimated_map(PatchedRuns(model, a, b, what, a.attention[0].name), ANSWER)
        assert np.isfinite(estimate).all()
        assert estimate.any()


@cases("what", ["head", "weights"])
def test_the_last_layers_heads_are_estimated_closely_where_only_a_norm_follows(what) -> None:
    model = loaded("attention-only")
    a, b = two_runs(model, (2, 3, 4, 2, 6))
    estimate = estimated_map(PatchedRuns(model, a, b, what), ANSWER)
    exact = patch_map(model, a, b, what, answer=ANSWER)
    assert np.abs(estimate - exact)[-1].max() < 0.05 * np.abs(exact[-1]).max()
    found = agreement(exact, estimate)
    assert found.cells == exact.size
    assert found.correlation == pytest.approx(np.corrcoef(exact.ravel(), estimate.ravel())[0, 1])
    assert found.largest == pytest.approx(np.abs(exact - estimate).max())


def test_agreement_leaves_out_what_is_not_there_yet() -> None:
    exact, estimate = np.array([[1.0, 2.0, np.nan], [3.0, 0.0, 5.0]]), np.arange(6.0).reshape(2, 3)
    found = agreement(exact, estimate)
    assert (found.cells, found.largest, found.mean) == (5, 4.0, pytest.approx(6 / 5))
    assert agreement(exact[:1, :2], estimate[:1, :2]).correlation is None
    assert agreement(np.full((1, 3), np.nan), estimate[:1]).cells == 0


def by_plain_hooks(
    model: Model, a: Trace, b: Trace, sender: int, receiver: int, reads: tuple[str, ...], held: bool
) -> float:
    """The answer by PyTorch's own hooks on the maps of a model of two layers. held: the feed-forwards."""
    first, second = model.module.get_submodule("decoder.blocks")
    ids = [model.ids(trace.tokens) for trace in (a, b)]

    def ended(ids: torch.Tensor, hooks: dict[torch.nn.Module, object]) -> float:
        handles = [module.register_forward_hook(hook) for module, hook in hooks.items()]
        with torch.inference_mode():
            last = model.module(ids)[0, -1]
        for handle in handles:
            handle.remove()
        return float(last[ANSWER[1]] - last[ANSWER[0]])

    read, written = [], []  # what W_O of layer 0 reads, and its feed-forward writes
    for one in ids:
        ended(
            one,
            {
                first.self_attention.output: lambda _, given, gave: read.append(given[0]),
                first.feed_forward: lambda _, given, gave: written.append(gave),
            },
        )
    heads = read[0].clone()
    heads[..., sender * 8 : sender * 8 + 8] = read[1][..., sender * 8 : sender * 8 + 8]
    sent = partial(torch.nn.functional.linear, heads)
    vectors: dict[str, torch.Tensor] = {}
    maps = {name: getattr(second.self_attention, name) for name in READS}
    caching = {
        maps[name]: lambda _, given, gave, name=name: vectors.update({name: gave}) for name in READS
    }
    output = first.self_attention.output
    replacing = {output: lambda _, given, gave: sent(output.weight, output.bias)}
    fixed = {first.feed_forward: lambda _, given, gave: written[0]} if held else {}
    ended(ids[0], caching | replacing | fixed)

    def put(name: str, _: object, given: object, gave: torch.Tensor) -> torch.Tensor:
        changed, columns = gave.clone(), slice(receiver * 8, receiver * 8 + 8)
        changed[..., columns] = vectors[name][..., columns]
        return changed

    return ended(ids[0], {maps[name]: partial(put, name) for name in reads})


def test_a_path_is_what_plain_hooks_make_of_it(subtests: pytest.Subtests) -> None:
    """With feed-forwards held as in run A, and with those that read the sender (Wang et al. 2022)."""
    for name, reads in product(["gpt", "llama", "gpt-post"], [READS, ("query",), ("value",)]):
        with subtests.test(name=name, reads=reads):
            model = loaded(name)
            a, b = two_runs(model)
            start, end = PatchedRuns(model, a, b, "head").answers(ANSWER)
            found = {}
            for way in ("fixed", "recomputed"):
                found[way] = path_map(
                    model, a, b, ("decoder.1.self", 2), reads, answer=ANSWER, feed_forwards=way
                )
                assert found[way].shape == (1, 3)
                for sender in range(3):
                    moved = by_plain_hooks(model, a, b, sender, 2, reads, way == "fixed")
                    share = (moved - start) / (end - start)
                    assert found[way][0, sender] == pytest.approx(share, abs=1e-4)
            assert np.abs(found["fixed"] - found["recomputed"]).max() > 1e-3
    with pytest.raises(ValueError, match="feed_forwards is 'held'"):
        path_map(model, a, b, ("decoder.1.self", 2), answer=ANSWER, feed_forwards="held")


def test_a_path_in_other_models_is_finite_and_from_earlier_heads_only(
    subtests: pytest.Subtests,
) -> None:
    for own in [*map(loaded, ["gpt-post", "translator"]), hub_models.loaded("llama")]:
        with subtests.test(model=own.name):
            a, b = two_runs(own)
            last = a.attention[-1].name
            for way in ("fixed", "recomputed"):
                found = path_map(own, a, b, (last, 0), answer=ANSWER, feed_forwards=way)
                assert found.shape[0] == len(a.attention) - 1
                assert np.isfinite(found).all()
                assert found.any()
            with pytest.raises(ValueError, match="No head comes before"):
                path_map(own, a, b, (a.attention[0].name, 0), answer=ANSWER)
