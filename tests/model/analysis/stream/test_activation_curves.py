"""Activation curves: values and slopes against PyTorch's functions and its autograd."""

import numpy as np
import pytest
import torch

from model import Model, Trace
from model.analysis.stream.feed_forward import activation_check, bends, flat_share
from model.nn.activations import ACTIVATION_LAWS, Activation
from model.nn.layers import ACTIVATIONS
from tests.cases import cases
from tests.model.tiny import TINY, loaded

POINTS = np.concatenate([np.linspace(-8, 8, 161), [-20.0, 20.0]])


@cases("name", ACTIVATION_LAWS)
def test_values_and_slopes_are_those_of_pytorch_and_its_autograd(name) -> None:
    x = torch.tensor(POINTS, requires_grad=True)
    y = ACTIVATIONS[name](x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(ACTIVATION_LAWS[name].value(POINTS), y.detach().numpy(), atol=1e-9)
    np.testing.assert_allclose(ACTIVATION_LAWS[name].slope(POINTS), slope.numpy(), atol=1e-9)


def test_every_activation_that_a_model_may_have_has_its_curve() -> None:
    assert set(ACTIVATION_LAWS) == set(ACTIVATIONS)


def test_a_value_is_bent_where_neither_nothing_nor_all_of_it_comes_through() -> None:
    x = np.array([-30.0, -0.75, 0.0, 1.0, 30.0], np.float32)
    after = torch.nn.functional.gelu(torch.tensor(x)).numpy()
    np.testing.assert_allclose(bends("gelu", x)[1:4], [0.16995, 0, 1 - after[3]], atol=1e-4)
    np.testing.assert_allclose(bends("gelu", x)[[0, -1]], 0, atol=1e-9)
    assert not bends("relu", x).any()


def gated(name: str) -> bool:
    return loaded(name).config.activation == "swiglu"


UNGATED = [name for name in TINY if name != "attention-only" and not gated(name)]


@pytest.mark.models(UNGATED)
def test_recorded_activations_are_their_formula_and_a_wrong_one_is_seen(
    model: Model, trace: Trace
) -> None:
    record = trace.feed_forward[0]
    found = activation_check(model.config.activation, record.before, record.hidden)
    assert found < 1e-5
    others: list[Activation] = ["relu", "relu2", "gelu", "gelu_tanh", "silu"]
    for other in others:
        apart = activation_check(other, record.before, record.hidden)
        assert (apart > 1e-4) is (other != model.config.activation)


@pytest.mark.models([*filter(gated, TINY)])
def test_a_gated_layer_is_not_checked_by_the_activation_alone(model: Model, trace: Trace) -> None:
    record = trace.feed_forward[0]
    assert activation_check("swiglu", record.before, record.hidden) is None


def test_the_flat_share_counts_every_value_whose_slope_is_near_zero() -> None:
    x = np.linspace(-6, 6, 4001, dtype=np.float32)
    for name, curve in ACTIVATION_LAWS.items():
        expected = (np.abs(curve.slope(x.astype(np.float64))) < 0.05).mean()
        assert flat_share(name, x) == pytest.approx(expected, abs=1e-3)
    assert flat_share("relu", np.array([-1.0, -2.0, 3.0, 0.5], np.float32)) == 0.5
