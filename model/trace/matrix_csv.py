"""Matrices as CSV that comes back as it was, and that no spreadsheet takes for formulas."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array

_FORMULA_STARTS = tuple("=+-@\t\r'")  # a spreadsheet takes such a cell for a formula or for a sign


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A matrix with a name for each row and column. Cells that are not allowed are NaN."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float32]  # (row, column)


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


def read_matrix_csv(text: str) -> dict[str, NamedMatrix]:
    """What `matrix_csv` wrote, by run. Raises ValueError for any other text."""
    try:
        return _read(text)
    except (csv.Error, LookupError, OverflowError, ValueError) as error:
        raise ValueError(f"This text holds no matrices that can be read: {error}.") from error


def _read(text: str) -> dict[str, NamedMatrix]:
    head, *lines = csv.reader(io.StringIO(text))
    columns = tuple(bared(name) for name in head[2:])
    found: dict[str, list[list[str]]] = {}
    for run, *rest in lines:
        if len(rest) != len(head) - 1:
            raise ValueError(f"a line has {len(rest)} cells where {len(head) - 1} are named")
        found.setdefault(bared(run), []).append(rest)
    return {
        run: NamedMatrix(
            tuple(bared(row[0]) for row in given),
            columns,
            np.array([[np.float32(cell or "nan") for cell in row[1:]] for row in given]),
        )
        for run, given in found.items()
    }


def sheltered(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe stands before "=1+1".

    It also stands before a text that begins with one, so that `bared` gives every text back.
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def bared(cell: str) -> str:
    """The text of a cell that `sheltered` wrote."""
    return cell.removeprefix("'")


def _csv(lines: Sequence[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(lines)
    return written.getvalue()
