"""Matrices as CSV: the same numbers when read again, and no cell that a spreadsheet runs."""

import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np

from model.trace.arrays import Array

_FORMULA_STARTS = tuple("=+-@\t\r'")


def matrix_csv(
    runs: Mapping[str, Array], *, rows: Sequence[str], columns: Sequence[str], corner: str
) -> str:
    """Matrices with the same row and column names, one below the other, the run's name first.

    Each number has as few digits as give the same float32 again; NaN, a masked cell, is empty.
    Raises ValueError if names and values do not fit.
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
