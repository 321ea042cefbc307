"""Gradients through a deep stack: measured, reproducible, and what shortcuts do to them."""

from itertools import product

import pytest
import torch

from model.analysis.stream.deep_stack import DEEPEST, DeepStack, gradient_sizes, passed
from model.nn.config import TransformerConfig
from model.nn.layers import Block
from tests.cases import cases

SHALLOW = DeepStack(depth=8, width=16, heads=2, tokens=4)


@cases("norms, seed", product(["none", "pre"], [0, 1, 2]))
def test_with_shortcuts_the_gradient_at_the_first_layer_is_larger(norms, seed) -> None:
    stack = DeepStack(norms=norms, seed=seed)  # type: ignore[arg-type]
    with_them = gradient_sizes(stack, shortcuts=True)
    without = gradient_sizes(stack, shortcuts=False)
    assert with_them[0] > without[0]
    assert len(with_them) == len(without) == stack.depth + 1
    if norms == "none":
        assert without[0] < 1e-6


def test_the_same_stack_gives_the_same_sizes_whatever_was_drawn_before() -> None:
    first = gradient_sizes(SHALLOW, shortcuts=True)
    gradient_sizes.cache_clear()
    torch.manual_seed(99)
    torch.rand(7)
    assert gradient_sizes(SHALLOW, shortcuts=True) == first
    assert (
        gradient_sizes(DeepStack(depth=8, width=16, heads=2, tokens=4, seed=1), shortcuts=True)
        != first
    )


@cases("shortcuts", [True, False])
def test_the_gradient_at_the_output_is_one(shortcuts) -> None:
    assert gradient_sizes(SHALLOW, shortcuts=shortcuts)[-1] == pytest.approx(1)


@cases("norms", ["none", "pre", "post"])
def test_the_deepest_stack_stays_finite(norms) -> None:
    for shortcuts in (True, False):
        sizes = gradient_sizes(DeepStack(depth=DEEPEST, norms=norms), shortcuts=shortcuts)  # type: ignore[arg-type]
        assert all(0 < size < float("inf") for size in sizes)


def tiny_block(place: str) -> Block:
    config = TransformerConfig(
        "encoder",
        1,
        4,
        16,
        2,
        encoder_layers=1,
        d_mlp=32,
        norm_place=place,  # type: ignore[arg-type]
    )
    return Block(config, "encoder", 0)


@cases("place", ["pre", "post"])
def test_with_its_norms_and_shortcuts_it_is_the_block_itself(place) -> None:
    torch.manual_seed(0)
    block, x = tiny_block(place), torch.randn(1, 4, 16)
    torch.testing.assert_close(passed(block, x, norms=place, shortcuts=True), block(x))  # type: ignore[arg-type]
    assert not torch.allclose(passed(block, x, norms=place, shortcuts=False), block(x))  # type: ignore[arg-type]
    assert not torch.allclose(passed(block, x, norms="none", shortcuts=True), block(x))


def test_the_gradient_is_that_of_finite_differences() -> None:
    """One step along the gradient changes the loss by its length."""
    block = tiny_block("pre").double()
    x = torch.randn(1, 4, 16, dtype=torch.float64, requires_grad=True)
    loss = lambda at: passed(block, at, norms="pre", shortcuts=False).square().sum()  # noqa: E731
    (gradient,) = torch.autograd.grad(loss(x), x)
    step = 1e-6 * gradient / gradient.norm()
    change = (loss(x + step) - loss(x - step)) / 2e-6
    torch.testing.assert_close(change.detach(), gradient.norm(), rtol=1e-4, atol=1e-6)


@cases("depth", [0, DEEPEST + 1])
def test_a_depth_that_cannot_be_measured_is_refused_in_a_sentence(depth) -> None:
    with pytest.raises(ValueError, match="it must be 1 to"):
        DeepStack(depth=depth)
