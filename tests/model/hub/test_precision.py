"""Half precision, on the processor here: the path is the same on CUDA."""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
import torch

from model import Intervention, Model, load_model
from model.analysis.attribution.score_parts import edge_values
from model.analysis.heads.contributions import ablate_each
from model.analysis.heads.sinks import token_as_key
from model.analysis.heads.statistics import families as families_of
from model.analysis.stream.positions import bias_terms, biased, distance_bias
from model.hub import loading
from model.serving.engine import model_size
from tests.cases import cases
from tests.model import hub_models as families

HALVES = ("bfloat16", "float16")
FAMILIES = ("llama", "bert", "bart", "gpt_neox")


def opened(family: str) -> Model:
    return load_model(str(families.saved(family)), device="cpu")


@cases("kind, family", product(HALVES, FAMILIES))
def test_a_model_runs_in_half_precision_and_says_so(
    kind, family, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = opened(family)
    monkeypatch.setenv("ATTENTION_DTYPE", kind)
    half = opened(family)
    assert {weight.dtype for weight in half.module.parameters()} == {getattr(torch, kind)}
    assert model_size(half) < 0.6 * model_size(whole)
    exact, trace = families.traced(whole), families.traced(half)
    assert exact.device == "the CPU"
    assert trace.device == f"the CPU, in {kind}"
    apart = [
        np.abs(one.weights(head) - two.weights(head)).max()
        for one, two in zip(exact.attention, trace.attention, strict=True)
        for head in range(one.heads)
    ]
    assert 0 < max(apart) < 0.05  # rounding, and no more
    assert trace.attention[0].query.dtype == np.float32
    assert trace.check() < 0.1
    changed = families.traced(half, Intervention(scale=1.0))
    assert not np.array_equal(changed.attention[-1].weights(0), trace.attention[-1].weights(0))


def test_what_pages_ask_beyond_a_trace_is_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_DTYPE", "bfloat16")
    model = opened("llama")
    trace = families.traced(model)
    attention, state = trace.attention[-1], trace.residual["decoder"][-1]
    for numbers in (model.embedding, model.unembed(state), model.head_output(attention, 0)):
        assert numbers.dtype == np.float32
    assert np.abs(model.unembed(state) - trace.logits).max() < 0.05
    assert len(model.generate(families.TEXT, limit=3)) == 3
    (*_, left_out) = ablate_each(model, trace, (), nullcontext)
    assert (left_out.measures["divergence"] > 0).any()
    assert np.isfinite(edge_values(model, trace, attention.name, head=0).norms).all()
    assert np.isfinite(token_as_key(model, trace, families_of(trace)[0]).carried).any()


def test_a_pass_that_rounds_more_than_the_library_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATTENTION_DTYPE", "bfloat16")
    monkeypatch.setattr(loading, "TIMES", 0.01)
    with pytest.raises(ValueError, match=r"in bfloat16 .* would differ from float32 by"):
        opened("llama")


def test_models_of_our_own_stay_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_DTYPE", "bfloat16")
    model = load_model("induction", device="cpu")
    assert {weight.dtype for weight in model.module.parameters()} == {torch.float32}
    assert model.trace("a b c a b").device == "the CPU"


@cases("asked, there, chosen", [
    ("auto", (), "cpu"),
    ("auto", ("mps", ), "mps"),
    ("auto", ("cuda", ), "cuda"),
    ("auto", ("cuda", "mps"), "cuda"),
    ("cpu", ("cuda", "mps"), "cpu"),
    ("mps", ("mps", ), "mps"),
    ("cuda:1", ("cuda", ), "cuda:1"),
    ("mps", ("cuda", ), None),
    ("cuda:1", ("mps", ), None),
])  # fmt: skip
def test_the_device_is_the_one_that_is_asked_for_or_the_best_there_is(
    asked, there, chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    from model.loading.loading import device_of

    monkeypatch.setattr("torch.cuda.is_available", lambda: "cuda" in there)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: "mps" in there)
    monkeypatch.setenv("ATTENTION_DEVICE", asked)
    if chosen is None:
        with pytest.raises(ValueError, match=f"ATTENTION_DEVICE names {asked[:3].upper()}"):
            device_of(None)
    else:
        assert device_of(None) == torch.device(chosen)


@cases("family", ["t5", "deberta-v3"])
def test_biases_of_half_weights_are_told_in_numbers(
    family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_DTYPE", "bfloat16")
    model = opened(family)
    (first, *_) = biased(families.traced(model))
    found = distance_bias(model, first) or bias_terms(model, first, 0)
    check = found.check if isinstance(found.check, float) else found.check()
    assert check < 0.05
