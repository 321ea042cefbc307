"""Matrices as CSV from which they can be read exactly, and that no spreadsheet takes for formulas."""

import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np

from model.trace.arrays import Array

_FORMULA_STARTS = tuple("=+-@\t\r'")  # a spreadsheet takes such a cell for a formula or for a sign


def matrix_csv(
    runs: Mapping[str, Array], *, rows: Sequence[str], columns: Sequence[str], corner: str
) -> str:
    """Matrices of equal names, one below the other, the name of the run in the first column.

    A number is written with as few digits as give exactly the same float32 again; NaN, a cell that
    is not allowed, as an empty cell. Raises ValueError if names and values do not fit.
    """
    lines: list[list[str]] = [["run", corner, *map(sheltered, columns)]]
    for run, values in runs.items():
        if values.shape != (len(rows), len(columns)):
            raise ValueError(f"{values.shape} values for {len(rows)} × {len(columns)} names.")
        for name, row in zip(rows, values.astype(np.float32), strict=True):
            numbers = ["" if np.isnan(value) else str(value) for value in row]
            lines.append([sheltered(run), sheltered(name), *numbers])
    return _csv(lines)


def sheltered(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe stands before "=1+1".

    It also stands before a text that begins with one, so that taking one off gives every text back.
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _csv(lines: Sequence[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(lines)
    return written.getvalue()
