"""A call whose arrays have other shapes than the annotations say fails in the tests."""

import jaxtyping
import numpy as np
import pytest
import torch

from model.arithmetic.attention import dot_products
from model.nn.attention import rotate


def test_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="key"):
        dot_products(np.zeros((2, 3, 4)), np.zeros((5, 3, 4)))
    with pytest.raises(jaxtyping.TypeCheckError, match="angles"):
        rotate(torch.zeros(2, 3, 4), torch.zeros(5, 2))


def test_numbers_of_another_kind_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="query"):
        dot_products(np.zeros((3, 4), dtype=int), np.zeros((3, 4)))
