"""The arrays of a trace: float32, read-only; what is computed from them in float64; and matrices as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Wide = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
F = TypeVar("F", np.float32, np.float64)


def holds_arrays(kind: object) -> bool:
    """Whether a field of this type is an array, or holds some: `Array | None`, `Mapping[str, Array]`."""
    # From numpy 2.5 and Python 3.12 on NDArray is an alias with a name, and the origin of what it stands for.
    return get_origin(kind) in (np.ndarray, NDArray) or any(map(holds_arrays, get_args(kind)))


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


_FORMULA_STARTS = tuple("=+-@\t\r'")


def matrix_csv(
    runs: Mapping[str, Array], *, rows: Sequence[str], columns: Sequence[str], corner: str
) -> str:
    """Matrices with the same row and column names, one below the other, the run's name first.

    Each number has as few digits as give the same float32 again; NaN, a masked cell, is empty.
    Raises ValueError if names and values do not fit.

    Args:
        runs: (row, column) each, by the run's name.
        corner: what stands above the names of the rows.
    """
    lines: list[list[str]] = [["run", corner, *map(sheltered, columns)]]
    for run, values in runs.items():
        if values.shape != (len(rows), len(columns)):
            raise ValueError(f"{values.shape} values for {len(rows)} × {len(columns)} names.")
        for name, row in zip(rows, values.astype(np.float32), strict=True):
            numbers = ["" if np.isnan(value) else str(value) for value in row]
            lines.append([sheltered(run), sheltered(name), *numbers])
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(lines)
    return written.getvalue()


def sheltered(text: str) -> str:
    """Text with an apostrophe before whatever a spreadsheet takes for a formula, such as "=1+1", and
    before an apostrophe: taking one off gives every text back."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
