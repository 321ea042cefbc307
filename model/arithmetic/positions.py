"""Sinusoidal positions and rotations, and the angles that both are computed from."""

import math

import numpy as np

from model.arithmetic import Array64
from model.nn.positions import pair_angles
from model.nn.positions import sinusoidal as sinusoidal


def exponents(width: int) -> Array64:
    """2i / d_model for each column: columns 2i and 2i + 1 are one pair and share it."""
    return 2.0 * (np.arange(width) // 2) / width


def angles(positions: Array64, width: int, base: float = 10_000.0) -> Array64:
    """pos / base^(2i/d_model), (position, column)."""
    return pair_angles(positions, width, base).repeat(2, -1)[:, :width]


def pair(angle: float) -> Array64:
    """(sine, cosine) of one angle."""
    return np.array([math.sin(angle), math.cos(angle)])


def shift_matrix(angle: float) -> Array64:
    """The matrix that takes the pair (sin a, cos a) to (sin(a + angle), cos(a + angle))."""
    sine, cosine = math.sin(angle), math.cos(angle)
    return np.array([[cosine, sine], [-sine, cosine]])


def rotated(vector: Array64, angle: float) -> Array64:
    """A vector of two numbers rotated by `angle` radians, as rotary positions rotate each pair.

    Source: Su et al. 2021, "RoFormer".
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    return np.array([[cosine, -sine], [sine, cosine]]) @ vector
