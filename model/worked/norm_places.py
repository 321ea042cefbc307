"""Post-LN and pre-LN: where the norm stands, and what that leaves in the stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import normalization
from model.worked import latex
from model.worked.example import Array, Step, Values, given, numbered, worked

_DIMENSIONS = numbered("dim", 4)


@worked(
    "where-the-norm-stands",
    "§9",
    "Post-LN and pre-LN",
    "The norm stands after the residual sum, or before each sub-layer with one final norm.",
    given("x", "x", [2, 4, 6, 8], _DIMENSIONS),
    given(
        "matrix",
        "The sub-layer f(x) = x·W (chosen here)",
        [[0.5, 0, 0, 0.2], [0, -0.3, 0.1, 0], [0.4, 0, 0.2, 0], [0, 0.6, 0, -0.1]],
        _DIMENSIONS,
        _DIMENSIONS,
    ),
)
def _norm_places(values: Values) -> tuple[Step, ...]:
    x, matrix = values["x"], values["matrix"]
    post = normalization.layer_norm(x + x @ matrix)
    entering = normalization.layer_norm(x)
    pre = x + entering @ matrix
    final = normalization.layer_norm(pre)

    def line(title: str, formula: str, result: Array, comment: str | None = None) -> Step:
        return Step(title, formula, result, latex.row(result), columns=_DIMENSIONS, comment=comment)

    before = line("Residual sum", r"x + f(x)", x + x @ matrix)
    after = line(
        "Post-LN output",
        r"\mathrm{LN}(x + f(x))",
        post,
        "The norm stands after the sum: the 2017 encoder and decoder, and BERT.",
    )
    stats = np.array([[row.mean(), row.var()] for row in (post, pre, final)])
    return (
        before,
        replace(after, quantity="output"),
        line("What enters the sub-layer in pre-LN", r"\mathrm{LN}(x)", entering),
        replace(
            line(
                "Pre-LN output",
                r"x + f(\mathrm{LN}(x))",
                pre,
                "The norm stands before the sub-layer; the stream itself is not normalized: GPT-2.",
            ),
            quantity="output",
        ),
        line(
            "Final norm of a pre-LN stack",
            r"\mathrm{LN}(\text{stream})",
            final,
            "A pre-LN stack therefore ends with one more norm.",
        ),
        Step(
            "Mean and variance",
            r"\mu,\ \sigma^2",
            stats,
            rf"\text{{post-LN: }} {latex.row(stats[0])}",
            ("post-LN output", "pre-LN output", "after the final norm"),
            ("mean", "variance"),
        ),
    )
