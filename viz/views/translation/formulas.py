"""Formulas of the encoder–decoder page. Pure.

X is the source's stream, Y the target's, E what the encoder hands over.
"""

from viz.notation.theme import KEY, QUERY, VALUE


def projections(queries: str, others: str, *, bias: bool) -> str:
    """Which stream queries come from, and which keys and values."""
    parts = (("Q", QUERY, queries), ("K", KEY, others), ("V", VALUE, others))
    return r",\quad ".join(
        rf"{name} = \textcolor{{{colour}}}{{{stream}\,W_{name}{f' + b_{name}' if bias else ''}}}"
        for name, colour, stream in parts
    )


CROSS = (
    r"a_{f,e} = \mathrm{softmax}_e\!\left("
    rf"\frac{{\textcolor{{{QUERY}}}{{q_f}} \cdot \textcolor{{{KEY}}}{{k_e}}}}{{\sqrt{{d_k}}}}\right)"
)
ON_REFERENCE = (
    r"\text{on the reference} = \frac{1}{F} \sum_{f} \sum_{e\, \in\, \text{reference}(f)} a_{f,e}"
)
FORCED = r"p(\text{French}) = \prod_{f} p\left(w_f \mid w_{<f},\ \text{English}\right)"
