"""How much dividing the variance by d - 1 instead of d changes the normalized values, by width."""

import numpy as np
import plotly.graph_objects as go

from model.arithmetic.normalization import shrinkage
from viz.figures.chart import chart, line, marks, titled
from viz.notation.theme import MASKED, STREAM

_WIDTHS = np.unique(np.round(np.geomspace(2, 4096, 120)))
_OTHERS = (4, 512)  # widths that are marked beside the model's own


def variance_gap(width: int) -> go.Figure:
    """The change in percent against the width d, with this model's width and two others marked."""
    hover = "d = %{x:.0f}: %{y:.3f} %"
    gaps = 100 * shrinkage(_WIDTHS)
    traces = [line(_WIDTHS, gaps, "", MASKED, width=2, hover=hover, showlegend=False)]
    others = [other for other in _OTHERS if other != width]
    for name, widths, colour in (("other widths", others, MASKED), ("this model", [width], STREAM)):
        gaps = 100 * shrinkage(np.array(widths, np.float64))
        traces.append(
            marks(
                widths,
                gaps,
                name=name,
                mode="markers+text",
                marker={"color": colour, "size": 11},
                text=[f"d = {d}: {gap:.2f} %" for d, gap in zip(widths, gaps, strict=True)],
                textposition=[_beside(d, (*_OTHERS, width)) for d in widths],
                cliponaxis=False,
                hover="%{text}",
                showlegend=True,
            )
        )
    ticks = [2, 4, 16, 64, 256, 1024, 4096]
    across = titled(
        "width d (dimensions of a token)",
        type="log",
        tickvals=ticks,
        ticktext=[str(tick) for tick in ticks],
        range=[np.log10(1.7), np.log10(9000)],
    )
    return chart(traces, across, titled("unbiased smaller by, %", rangemode="tozero"), height=360)


def _beside(width: int, all_widths: tuple[int, ...]) -> str:
    """A label is on the right of its mark, or on the left if another mark is close by."""
    close = any(width < other < 8 * width for other in all_widths)
    return "top left" if close else "top right"
