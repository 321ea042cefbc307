"""The arrays of a trace: float32, read-only; and what is computed from them in float64."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Wide = NDArray[np.float64]
Mask = NDArray[np.bool_]
F = TypeVar("F", np.float32, np.float64)


def softmax(scores: NDArray[F], axis: int = -1) -> NDArray[F]:
    """Softmax along an axis; a row of nothing but minus infinity gives zeros, never NaN."""
    top = scores.max(axis, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isneginf(top), 0, top))
    sums = exponentials.sum(axis, keepdims=True)
    return np.asarray(exponentials / np.where(sums == 0, 1, sums), scores.dtype)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Makes an array read-only; floats of other widths become float32."""
    if array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    array.flags.writeable = False
    return array
