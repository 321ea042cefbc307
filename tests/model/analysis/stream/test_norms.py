"""Layer norm and RMS norm: statistics and outputs against PyTorch's own."""

import numpy as np
import torch
import torch.nn.functional as F

from model import Model, Trace
from model.nn.config import TransformerConfig
from model.nn.layers import Norm
from model.nn.recorder import Recorder, recording
from model.trace.collect import norm_record
from model.trace.records import NormRecord
from tests.cases import cases
from tests.model.tiny import sentence, target


def pytorchs(norm: NormRecord) -> np.ndarray:
    x, gamma, beta = (torch.tensor(array) for array in (norm.input, norm.gamma, norm.beta))
    if norm.kind == "layer":
        return F.layer_norm(x, gamma.shape, gamma, beta, norm.epsilon).numpy()
    return F.rms_norm(x, gamma.shape, gamma, norm.epsilon).numpy()


def test_the_output_of_a_norm_is_pytorchs(trace: Trace) -> None:
    assert trace.norms
    for norm in trace.norms:
        np.testing.assert_allclose(norm.output, pytorchs(norm), atol=2e-5, err_msg=norm.name)


def test_an_output_that_was_not_kept_is_derived_equal(model: Model, trace: Trace) -> None:
    lean = model.trace(sentence(model), target(model))
    for kept, derived in zip(trace.norms, lean.norms, strict=True):
        assert kept.recorded is not None
        assert derived.recorded is None
        np.testing.assert_allclose(kept.output, derived.output, atol=2e-5, err_msg=kept.name)


def test_the_variance_is_the_biased_one_and_an_rms_norm_has_no_mean(trace: Trace) -> None:
    for norm in trace.norms:
        layer = norm.kind == "layer"
        expected = norm.input.var(-1) if layer else np.square(norm.input).mean(-1)
        np.testing.assert_allclose(norm.variance, expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(norm.mean, norm.input.mean(-1) if layer else 0, atol=1e-5)


def test_norms_are_named_after_what_they_belong_to(model: Model, trace: Trace) -> None:
    names = [norm.name for norm in trace.norms]
    assert len(set(names)) == len(names)
    assert {f"{name}.norm" for name in model.attention_names} <= set(names)
    assert {norm.kind for norm in trace.norms} == {model.config.norm}
    final = [name for name in names if name.endswith("final.norm")]
    assert len(final) == (len(model.stacks()) if model.config.norm_place == "pre" else 0)


@cases("kind", ["layer", "rms"])
def test_a_row_without_variance_has_no_negative_variance_and_no_nan(kind) -> None:
    config = TransformerConfig("decoder", 4, 4, 8, 2, decoder_layers=1, norm=kind)  # type: ignore[arg-type]
    rows = torch.zeros(1, 3, 8)
    rows[0, 1] = 3.0
    with recording(Recorder(level="full")) as recorder:
        Norm(config, "some.norm")(rows)
    record = norm_record(recorder.norms[0])
    assert (record.variance >= 0).all()
    for values in (record.normalized, record.output, np.sqrt(record.variance)):
        assert np.isfinite(values).all()
