"""How formulas are written: with slots for the numbers of one cell, and for the theme's colours.

A slot is written `@name@` and filled by the browser with a number; `@(name)@` puts negative numbers in
brackets; `@ink:query@` and the like become the theme's colours. Token text never enters LaTeX.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_NEXT_LINE, _MORE = r" \\ ", r" + \cdots"
_TERMS = r" \\ &\quad + "  # each term of a sum on a line of its own
StageName = Literal[
    "positions",
    "norm",
    "query_norm",
    "key_norm",
    "query",
    "key",
    "value",
    "scores",
    "scaled",
    "capped",
    "biased",
    "masked",
    "weights",
    "output",
    "concatenated",
    "written",
]


@dataclass(frozen=True)
class Formula:
    """The formulas of one step. `numeric` has a template for each case, such as "allowed" and "forbidden"."""

    general: str
    plain: str  # the same as plain text, for a browser without KaTeX
    numeric: Mapping[str, str]


def coloured(colour: str, latex: str) -> str:
    return rf"\textcolor{{@ink:{colour}@}}{{{latex}}}"


def bold(colour: str, latex: str) -> str:
    """The result of a numeric formula: bold, in the quantity's ink."""
    return rf"{{\color{{@ink:{colour}@}}\mathbf{{{latex}}}}}"


def aligned(*lines: str) -> str:
    """Lines of LaTeX, aligned at their `&`."""
    return rf"\begin{{aligned}} {_NEXT_LINE.join(lines)} \end{{aligned}}"


def named_cell(name: str) -> str:
    """One number of a stage, by the positions of its query and its key."""
    return rf"\text{{{name}}}_{{@query_position@,@key_position@}}"


def summed(terms: list[str], count: int) -> str:
    """The first terms of a sum of so many, and dots for the rest."""
    return _TERMS.join(terms) + (_MORE if count > len(terms) else "")


def two_terms(first: tuple[str, str], second: tuple[str, str], count: int) -> str:
    """The first two products of a sum, each factor a (colour, letter of its slot), and dots for the rest."""
    products = [
        rf"{coloured(first[0], f'@({first[1]}{n})@')}\cdot {coloured(second[0], f'@({second[1]}{n})@')}"
        for n in range(min(count, 2))
    ]
    return summed(products, count)
