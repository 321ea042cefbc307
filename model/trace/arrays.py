"""The arrays of a trace: float32, closed for writing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]


def softmax(masked: Array) -> Array:
    """Softmax over the last axis, with rows of nothing but minus infinity left at zero."""
    top = masked.max(-1, keepdims=True)
    exponentials = np.exp(masked - np.where(np.isneginf(top), 0, top))
    sums = exponentials.sum(-1, keepdims=True)
    return (exponentials / np.where(sums == 0, 1, sums)).astype(np.float32)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Closes an array for writing; floats of other widths become float32."""
    if array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    array.flags.writeable = False
    return array
