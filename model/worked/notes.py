"""The notes that the worked examples come from: the documents, and what they print, kept in its digits."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.system.words import Words

say = Words("worked.notes")

NOTHING = "_"  # a cell that the notes leave out
_EXACT = 4


@dataclass(frozen=True)
class Document:
    """One of the sets of notes. `about` says what it is and where its name comes from."""

    title: str
    about: str

    def at(self, part: str) -> NotesPlace:
        """A part of this document, by its heading or its class."""
        return NotesPlace(self, part)


@dataclass(frozen=True)
class NotesPlace:
    """Where in the notes something stands."""

    document: Document
    part: str

    def __str__(self) -> str:
        return f"“{self.document.title}”, {self.part}"


MATRICES = Document(
    say("matrix_calculation_self"),
    say("notebook_called_first"),
)
INTRODUCTION = Document(
    "Introduction to transformers",
    say("notebook_sums_done"),
)
GPT = Document(
    say("tokenization_attention_building"),
    say("notes_three_chapters"),
)
PAPER = Document(
    "Original transformer architecture",
    say("notebook_paper_attention"),
)
TWO_LAYERS = Document(
    "TwoLayerTransformer",
    say("notebook_without_title"),
)
DOCUMENTS = (MATRICES, INTRODUCTION, GPT, PAPER, TWO_LAYERS)


def quoted(file: str) -> Iterator[dict[str, Any]]:
    """The entries of a file beside this one that says what the notes have; each with its `source`."""
    documents = {document.title: document for document in DOCUMENTS}
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    for entry in tomllib.loads(text)["quoted"]:
        yield {"source": documents[entry.pop("document")].at(entry.pop("part")), **entry}


@dataclass(frozen=True)
class Printed:
    """Figures as the notes print them: rows parted by `;`, numbers by blanks, `_` where there is none.

    A whole number or a fraction is exact, to the four decimals the notes work with; a factor in words
    (`7x`) is rounded to a whole number. `source` says where the figures stand; `quotation` is one place
    there, word for word. `erratum` says in one sentence why figures are wrong, where any are.
    """

    text: str
    source: NotesPlace
    quotation: str
    erratum: str | None = None

    @property
    def figures(self) -> tuple[str, ...]:
        """Every printed figure, row after row, and `_` for each cell without one."""
        return tuple(self.text.replace(";", " ").split())

    @property
    def values(self) -> NDArray[np.float64]:
        """The printed figures as numbers, in one row; NaN where nothing is printed."""
        return np.array([_value(figure) for figure in self.figures])

    @property
    def decimals(self) -> tuple[int, ...]:
        """To how many decimals each figure is given."""
        return tuple(_decimals(figure) for figure in self.figures)

    def differing(self, result: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which printed figures are not `result` rounded to the digits printed, in its shape."""
        if self.values.size != result.size:
            raise ValueError(f"The notes print {self.values.size} figures, not {result.size}.")
        distance = np.abs(result.ravel() - self.values)  # NaN, which no comparison finds too large
        wrong: NDArray[np.bool_] = distance > 0.5 * 10.0 ** -np.array(self.decimals, float) + 1e-12
        return wrong.reshape(result.shape)


@cache
def printed_steps() -> Mapping[tuple[str, str], Printed]:
    """What the notes print, by the example's name and the title of its step."""
    return {
        (one["example"], one["step"]): Printed(
            one["figures"], one["source"], one["quotation"], one.get("erratum")
        )
        for one in quoted("printed.toml")
    }


def _value(figure: str) -> float:
    if figure == NOTHING:
        return float("nan")
    return float(Fraction({"False": "0"}.get(figure, figure.rstrip("%x"))))


def _decimals(figure: str) -> int:
    if figure.endswith("x"):
        return 0
    return len(figure.partition(".")[2]) if "." in figure else _EXACT
