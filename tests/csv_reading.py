"""A CSV of matrices, read as docs/trace-format.md describes it."""

import csv
import io

import numpy as np
import pandas as pd


def bared(cell: str) -> str:
    """A name without the apostrophe that shelters it."""
    return cell.removeprefix("'")


def read_matrix_csv(text: str) -> dict[str, pd.DataFrame]:
    """The matrices by run, with the names of their rows and columns; NaN where a cell is empty."""
    (_, _, *columns), *lines = csv.reader(io.StringIO(text))
    runs = dict.fromkeys(line[0] for line in lines)
    return {
        bared(run): pd.DataFrame(
            [[np.float32(cell or "nan") for cell in line[2:]] for line in lines if line[0] == run],
            index=[bared(line[1]) for line in lines if line[0] == run],
            columns=[bared(name) for name in columns],
        )
        for run in runs
    }
