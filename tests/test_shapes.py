"""A call whose arrays have other shapes than the annotations say fails in the tests."""

import inspect
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from jaxtyping import AbstractArray

from model.arithmetic import attention as arithmetic
from model.arithmetic.attention import dot_products
from model.nn.attention import attend, rotate
from model.nn.places import Place
from tests.shapes import MODULES


def test_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="key"):
        dot_products(np.zeros((2, 3, 4)), np.zeros((5, 3, 4)))
    with pytest.raises(jaxtyping.TypeCheckError, match="angles"):
        rotate(torch.zeros(2, 3, 4), torch.zeros(5, 2))


def test_numbers_of_another_kind_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="query"):
        dot_products(np.zeros((3, 4), dtype=int), np.zeros((3, 4)))


@pytest.mark.parametrize(("name", "given"), [
    ("mask", torch.ones(3, 3)),
    ("mask", torch.ones(2, 3, dtype=torch.bool)),
    ("bias", torch.ones(3, 3, dtype=torch.long)),
    ("bias", torch.ones(2, 3, 4)),
    ("sinks", torch.ones(3)),
    ("sinks", torch.ones(2, 1)),
])  # fmt: skip
def test_attend_refuses_masks_biases_and_sinks_of_another_kind_or_shape(
    name: str, given: torch.Tensor
) -> None:
    vectors = torch.zeros(1, 2, 3, 4)
    with pytest.raises(jaxtyping.TypeCheckError, match=f"parameter '{name}'"):
        attend(vectors, vectors, vectors, Place("encoder", 0, "self"), **{name: given})


@pytest.mark.parametrize("allowed", [np.ones((3, 3), dtype=bool), np.ones((2, 3))])
def test_the_arithmetic_refuses_allowed_cells_of_another_kind_or_shape(allowed: Any) -> None:
    vectors = np.zeros((3, 4))
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'allowed'"):
        arithmetic.attend(vectors, vectors, vectors, allowed=allowed)


def test_every_annotation_of_these_modules_is_checked() -> None:
    """jaxtyping takes one that cannot be evaluated for `Any`, and is silent."""
    for module in map(import_module, MODULES):
        checked = [
            part
            for function in functions_of(module)
            for hint in typing.get_type_hints(function).values()
            for part in (hint, *typing.get_args(hint))
            if isinstance(part, type) and issubclass(part, AbstractArray)
        ]
        written = inspect.getsource(module)
        assert len(checked) == sum(written.count(f"{kind}[") for kind in ("Bool", "Float", "Int"))


def functions_of(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """Those that a module defines, methods too."""
    for owner in (module, *(one for one in vars(module).values() if inspect.isclass(one))):
        for one in vars(owner).values():
            if inspect.isfunction(one) and one.__module__ == module.__name__:
                yield one
