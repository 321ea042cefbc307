"""How much one head reads of what another wrote, told from their matrices alone.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

import numpy as np

from model.arithmetic import Array64


def composition(written: Array64, read: Array64) -> float:
    """‖written · read‖ / (‖written‖ · ‖read‖), in Frobenius norms: 0 where the reader sees nothing of what
    is written. For row vectors: x · written is what the earlier head adds, times `read` what the later one
    makes of it."""
    lengths = np.linalg.norm(written) * np.linalg.norm(read)
    return float(np.linalg.norm(written @ read) / lengths)


def random_composition(width: int) -> float:
    """The same of matrices of independent random numbers: 1/√d_model.

    It is the root of E‖written · read‖² / (E‖written‖² · E‖read‖²), whatever the width of a head.
    """
    return float(1.0 / np.sqrt(width))
