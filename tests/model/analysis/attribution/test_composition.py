"""Composition of two matrices, against cases with a known answer and against sampling."""

import numpy as np
import pytest
import torch

from model.arithmetic.composition import composition, random_composition


def test_a_reader_sees_all_nothing_or_a_part_of_what_is_written() -> None:
    first, second = np.diag([1.0, 1, 0, 0]), np.diag([0.0, 0, 1, 1])
    assert composition(first, second) == 0
    assert composition(first[:, :1], first[:1]) == pytest.approx(1)  # one direction, read whole
    assert composition(first, first) == pytest.approx(1 / np.sqrt(2))


def test_random_matrices_give_the_baseline() -> None:
    generator, width = torch.Generator().manual_seed(3), 96
    drawn = [torch.randn(4, width, 12, generator=generator) for _ in range(60)]
    ratios = [composition((q @ k.T).numpy(), (v @ o.T).numpy()) for q, k, v, o in drawn]
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(random_composition(width), rel=0.02)
