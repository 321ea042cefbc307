"""Queries of a profile's folder, which DuckDB runs on the Parquet files.

The connection can read the files of the folder and nothing else: no other file, no network, no extension.
Typed text is always a parameter, never a part of a query.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from model.nn.places import Head
from model.profile.examples import CRITERIA
from model.profile.opening import files_of
from model.system.border import at_border

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 100  # rows of an answer
_LIMITS: dict[str, str | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "512MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a table is no Python variable
}
# position() takes its text as it is: "%" and "_" are letters.
_EXAMPLES = """
SELECT layer, heads.head, criterion, score, examples.window, query, key, weight, query_token, key_token, text
FROM read_parquet($examples) examples
JOIN read_parquet($heads, file_row_number = true) heads ON heads.file_row_number = examples.head
JOIN read_parquet($windows) windows ON windows.window = examples.window
WHERE (position(lower($text) IN lower(query_token)) > 0 OR position(lower($text) IN lower(key_token)) > 0)
  AND (NOT $whole OR lower($text) IN (lower(trim(query_token, ' ▁')), lower(trim(key_token, ' ▁'))))
  AND ($layer IS NULL OR (layer = $layer AND heads.head = $head))
  AND ($criterion IS NULL OR criterion = $criterion)
ORDER BY score DESC, examples.head, examples.window, criterion
LIMIT $most
"""
_HEADS = """
SELECT layer, head, label, score, control
FROM read_parquet($labels)
WHERE label = $label AND score >= $least AND (given OR NOT $given)
ORDER BY score DESC, layer, head
LIMIT $most
"""


@contextmanager
def connected(paths: Sequence[Path]) -> "Iterator[DuckDBPyConnection]":
    """A connection that can read these files and do nothing else. Its configuration is locked."""
    import duckdb  # 30 MB that only a search needs

    with duckdb.connect(":memory:", config=_LIMITS) as connection:
        connection.execute("SET allowed_paths = ?", [[str(path) for path in paths]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


@at_border
def search(
    folder: str | Path,
    text: str,
    head: Head | None = None,
    criterion: str | None = None,
    *,
    whole: bool = False,
    most: int = MOST,
) -> pd.DataFrame:
    """The examples whose token under the query or the key contains a text, whatever its case; the highest
    score first.

    Args:
        folder: of a profile.
        head, criterion: only theirs; None: all.
        whole: the token is the text, spaces around it aside.
        most: rows.

    Raises ValueError for a folder without a profile, for an empty text and for an unknown criterion.

    >>> from model.profile import profile, search
    >>> letters = profile("induction", "letters.txt", "letters")
    >>> search("letters", "A", most=1).columns[:3].tolist()
    ['layer', 'head', 'criterion']
    """
    if not text.strip():
        raise ValueError("There is no text yet. Type a part of a token.")
    if criterion is not None and criterion not in CRITERIA:
        raise ValueError(f"{criterion!r} is no criterion; there are {', '.join(CRITERIA)}.")
    layer, number = head or (None, None)
    asked = {
        "text": text.strip() if whole else text,
        "whole": whole,
        "layer": layer,
        "head": number,
    }
    names = ("examples", "heads", "windows")
    _check_most(most)
    return _answer(folder, _EXAMPLES, names, {**asked, "criterion": criterion, "most": most})


@at_border
def labelled(
    folder: str | Path, label: str, *, least: float = 0.0, given: bool = True, most: int = MOST
) -> pd.DataFrame:
    """The heads with a label, the highest score first: `layer`, `head`, `label`, `score`, `control`.

    Args:
        folder: of a profile.
        least: of a score, 0 to 1.
        given: only those that get the label.
        most: rows.

    Raises ValueError for a folder without a profile.

    >>> from model.profile import labelled, profile
    >>> letters = profile("induction", "letters.txt", "letters")
    >>> labelled("letters", "induction").columns.tolist()
    ['layer', 'head', 'label', 'score', 'control']
    """
    _check_most(most)
    asked = {"label": label, "least": least, "given": given, "most": most}
    return _answer(folder, _HEADS, ("labels",), asked)


def _check_most(most: int) -> None:
    if most < 0:
        raise ValueError(f"most is {most}; it must be a number of rows.")


def _answer(
    folder: str | Path, query: str, names: Sequence[str], asked: dict[str, object]
) -> pd.DataFrame:
    files = files_of(Path(folder))
    paths = {name: files[name] for name in names}
    with connected(list(paths.values())) as connection:
        places = {name: str(path) for name, path in paths.items()}
        return connection.execute(query, {**places, **asked}).df()
