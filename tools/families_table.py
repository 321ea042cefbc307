"""The table of families of models in docs/families.md. `python -m tools.families_table` writes it.

Each is a small random model, opened as any other and held against the library's own eager attention.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from model.trace.unproven import WORDS
from tests.model.hub_models import (
    FAMILIES,
    ODD,
    PARTLY,
    REFUSED,
    eager,
    eager_weights,
    loaded,
    traced,
)
from tools.tables_of_docs import rewrite

PAGE = Path(__file__).parents[1] / "docs" / "families.md"
BEGIN, END = "<!-- families: made by `python -m tools.families_table` -->", "<!-- families: end -->"


class Measured(NamedTuple):
    """How a family opens, and its worst differences from eager attention."""

    degree: str
    weights: float = 0.0
    result: float = 0.0  # logits, or an encoder's last states, as a share of the largest

    def row(self, family: str) -> str:
        """A line of the table."""
        gaps = (
            "" if self.degree.startswith("refused") else f"{self.weights:.0e} | {self.result:.0e}"
        )
        return f"| {family} | {self.degree} | {gaps or ' | '} |"


def measured(family: str) -> Measured:
    """Opens the small model of a family and compares it."""
    try:
        model = loaded(family)
    except ValueError as refusal:
        return Measured("refused: " + str(refusal).partition("cannot be shown: ")[2])
    trace = traced(model)
    theirs = eager(model, trace)
    gaps = [
        float(np.abs(attention.weights(head) - weights[0, head].numpy()).max())
        for attention, weights in zip(trace.attention, eager_weights(model, theirs), strict=True)
        for head in range(attention.heads)
    ]
    _, ours = model.passed(trace.tokens, trace.target_tokens)
    result = theirs.logits if "logits" in theirs else theirs.last_hidden_state
    apart = float(np.abs(ours - result[0].numpy()).max() / max(float(result.abs().max()), 1.0))
    lacking = [words for part, words in WORDS.items() if part in model.unproven]
    degree = "in full" if not lacking else "without " + ", ".join(lacking)
    return Measured(degree, max(gaps), apart)


def table() -> str:
    """All families, those opened in full first."""
    found = {family: measured(family) for family in (*FAMILIES, *PARTLY, *ODD, *REFUSED)}
    found = dict(sorted(found.items(), key=lambda each: each[1].degree != "in full"))
    rows = [each.row(family) for family, each in found.items()]
    head = "| family | opened | weights differ by | logits or states differ by |"
    return "\n".join([head, "|---|---|---|---|", *rows])


if __name__ == "__main__":
    rewrite(PAGE, table(), BEGIN, END)
