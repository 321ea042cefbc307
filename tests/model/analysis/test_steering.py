"""Steering is the library's own model with a vector added to what one block reads."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from model import Intervention, load_trace
from model.analysis import score_parts
from model.analysis.attribution.patching import PatchedRuns
from model.analysis.stream.steering import continuation, direction, steered
from model.many import trace_all
from model.nn.steering import Steering
from model.trace.trace import Trace
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded
from viz.state.intervention_words import change_in_words

TOWARD, AWAY = "the cat saw the mat", "the tiger kills a dog"
LAYERS = {"gpt2": "transformer.h", "llama": "model.layers"}


@cases("family", LAYERS)
def test_a_multiple_is_added_to_what_one_block_reads(family) -> None:
    model = hub_models.loaded(family)
    folder = hub_models.saved(family)
    stock = transformers.AutoModelForCausalLM.from_pretrained(folder).eval().requires_grad_(False)
    trace = hub_models.traced(model)
    block = stock.get_submodule(LAYERS[family])[1]
    read: list[torch.Tensor] = []
    handle = block.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    for text in (TOWARD, AWAY):
        stock(model.ids(model.tokens(text)))
    handle.remove()
    expected = (read[0][0, -1] - read[1][0, -1]).detach()
    toward = direction(model.trace(TOWARD), model.trace(AWAY), "decoder.1.self")
    assert toward == pytest.approx(expected.numpy(), abs=1e-5)
    found = steered(model, trace, toward, "decoder.1.self", (-2.0, 0.0, 3.0))
    ids = model.ids(trace.tokens)
    for multiple, logits, loss in zip(found.multiples, found.logits, found.loss, strict=True):
        handle = block.register_forward_pre_hook(
            lambda _, given, m=multiple: (given[0] + m * expected, *given[1:])
        )
        theirs = stock(ids, labels=ids)
        handle.remove()
        assert logits == pytest.approx(theirs.logits[0, -1].detach().numpy(), abs=1e-4)
        assert loss == pytest.approx(float(theirs.loss), abs=1e-4)
        change = Steering(toward, "decoder.1.self", multiple)
        for explicit in (False, True):
            own = model.trace(
                [token.id for token in trace.tokens], intervention=change, explicit=explicit
            )
            expected_logits = theirs.logits[0].detach().numpy()
            np.testing.assert_allclose(own.logits, expected_logits, atol=1e-4)
            assert own.check() < 1e-4


def house() -> tuple[Trace, np.ndarray]:
    model = loaded("house-gpt")
    happy = model.trace("He was happy and full of joy")
    sad = model.trace("He was sad and full of grief")
    return model.trace("He was"), direction(happy, sad, "decoder.1.self")


def test_nothing_added_is_the_run_itself_and_joy_comes_of_joy() -> None:
    model = loaded("house-gpt")
    trace, toward = house()
    found = steered(model, trace, toward, "decoder.1.self", (0.0, 4.0))
    assert np.array_equal(found.logits[0], trace.require_prediction().after(-1))
    (joy,) = (one.id for one in model.tokens("of joy") if one.text == " joy")
    assert found.probabilities[0, joy] < 0.01 < 0.5 < found.probabilities[1, joy]
    assert found.probabilities.sum(-1) == pytest.approx([1, 1])
    written = [one.text for one in continuation(model, trace, toward, "decoder.1.self", 4.0, 3)]
    assert " joy" in written


def test_a_list_of_texts_is_steered_as_each_alone(subtests: pytest.Subtests) -> None:
    """An encoder–decoder in either stack, too."""
    texts = ["the cat", "the cat saw the mat"]
    for name, place in (
        ("translator", "encoder.0.self"),
        ("translator", "decoder.1.self"),
        ("bert", "encoder.1.self"),
    ):
        with subtests.test(name=name, place=place):
            model, stack = loaded(name), place.split(".")[0]
            toward = np.linspace(-1, 1, model.config.d_model, dtype=np.float32)
            change = Steering(toward, place, 2.0)
            for text, one in zip(texts, trace_all(model, texts, intervention=change), strict=True):
                alone, own = model.trace(text, intervention=change), model.trace(text)
                last = [trace.residual[stack][-1] for trace in (one, alone, own)]
                np.testing.assert_allclose(last[0], last[1], atol=1e-5)
                assert np.abs(last[1] - last[2]).max() > 1e-2


def test_a_steered_trace_says_so_and_is_steered_wherever_it_runs_again(tmp_path: Path) -> None:
    model = loaded("house-gpt")
    plain, toward = house()
    steering = Steering(toward, "decoder.1.self", 4.0)
    steered_trace = model.trace(plain.text, intervention=Steering(toward, 1, 4.0))
    steered_trace.save(tmp_path / "steered.safetensors")
    for trace in (steered_trace, load_trace(tmp_path / "steered.safetensors")):
        assert trace.intervention == Intervention(steering=steering)
        assert trace.intervention != Intervention(steering=replace(steering, multiple=3.0))
        assert repr(steering) in repr(trace)
        assert "4 times" in change_in_words(trace)
    assert repr(plain).count("Intervention") == 0
    ids = 5, 9
    runs = PatchedRuns(model, steered_trace, plain, "head")
    for answer, trace in zip(runs.answers(ids), (steered_trace, plain), strict=True):
        logits = trace.require_prediction().after(-1)
        assert answer == pytest.approx(logits[9] - logits[5], abs=1e-4)
    with pytest.raises(ValueError, match="is not the sum"):
        score_parts(model, steered_trace, "decoder.2.self", head=1, query=1, key=0)
    for wrong in (np.ones((2, 3), np.float32), np.array([np.inf], np.float32)):
        with pytest.raises(ValueError, match="finite numbers"):
            Steering(wrong, "decoder.1.self")


def test_without_a_vector_it_writes_what_the_model_writes() -> None:
    model = loaded("house-gpt")
    trace, toward = house()
    for multiple in (0.0, 4.0):
        change = Steering(toward, "decoder.1.self", multiple)
        own = model.generate(trace.text, limit=5, intervention=change)
        assert continuation(model, trace, toward, "decoder.1.self", multiple, 5) == own


def test_what_cannot_be_steered_is_refused_in_a_sentence() -> None:
    model = loaded("house-gpt")
    trace, toward = house()
    with pytest.raises(ValueError, match="no direction"):
        direction(trace, trace, "decoder.1.self")
    with pytest.raises(ValueError, match="no layer"):
        steered(model, trace, toward, "decoder.9.self", (1.0,))
    translator = loaded("translator")
    width = np.ones(translator.config.d_model, np.float32)
    for place, words in (("decoder.0.cross", "before a layer"), ("decoder.9.self", "no attention")):
        with pytest.raises(ValueError, match=words):
            translator.trace([2, 3], intervention=Steering(width, place))
    encoder = loaded("minilm")
    with pytest.raises(ValueError, match="predicts no next token"):
        steered(encoder, encoder.trace("the cat"), toward, "encoder.1.self", (1.0,))
