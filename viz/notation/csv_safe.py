"""Tables whose text stays text when a visitor saves them as CSV."""

import re
from typing import TYPE_CHECKING

from viz.notation.labels import WORD_JOINER

if TYPE_CHECKING:
    import pandas as pd

_FORMULA_STARTS = tuple("=+-@")  # a spreadsheet reads such a cell as a formula
_NUMBER = re.compile(r"[+-][\d.,]+(e[+-]?\d+)?( ?%)?", re.IGNORECASE)


def sheltered_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The table with a word joiner, which has no width, before each text that a spreadsheet would run,
    such as "=1+1", in cells and in names of rows and columns. Numbers written as text stay as they are."""
    import pandas as pd  # takes 0.3 seconds: pages are drawn first

    made = frame.copy()
    for place, kind in enumerate(made.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            made.isetitem(place, made.iloc[:, place].map(_sheltered).to_numpy())
    made.columns = made.columns.map(_sheltered)
    if not pd.api.types.is_numeric_dtype(made.index.dtype):
        made.index = made.index.map(_sheltered)
    return made


def _sheltered(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_FORMULA_STARTS) or _NUMBER.fullmatch(cell):
        return cell
    return WORD_JOINER + cell
