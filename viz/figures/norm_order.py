"""The places of a norm in a block, drawn as boxes and arrows."""

import plotly.graph_objects as go

from model.nn.config import NormPlace
from viz.figures.chart import chart
from viz.notation.theme import MASKED, STREAM, rgba

_ORDERS: dict[NormPlace, tuple[str, ...]] = {
    "pre": ("x", "norm", "f", "+", "out"),
    "post": ("x", "f", "+", "norm", "out"),
    "both": ("x", "norm", "f", "norm", "+", "out"),
    "after": ("x", "f", "norm", "+", "out"),
}
_TITLES: dict[NormPlace, str] = {
    "pre": "pre-norm: x + f(norm(x))",
    "post": "post-norm: norm(x + f(x))",
    "both": "before and after f: x + norm(f(norm(x)))",
    "after": "after f: x + norm(f(x))",
}
_LETTERS = {"size": 15}
_STEP, _ROW, _HALF = 1.5, 2.0, 0.42  # distances between boxes and rows, half a box


def norm_orders(own: NormPlace) -> go.Figure:
    """Pre-norm and post-norm, and the model's own order where it is another, one below the other; the
    model's own is drawn in colour.

    f is the sub-layer: attention or feed-forward.
    """
    orders: list[NormPlace] = [*(() if own in ("pre", "post") else (own,)), "pre", "post"]
    steps, rows = max(len(_ORDERS[place]) for place in orders) - 1, len(orders) - 1
    across = {"visible": False, "range": [-0.7, steps * _STEP + 0.7], "fixedrange": True}
    down = {"visible": False, "range": [-rows * _ROW - 0.7, 1.25], "fixedrange": True}
    figure = chart([], across, down, height=40 + 150 * len(orders))
    for number, place in enumerate(orders):
        _draw(figure, place, -number * _ROW, own=place == own)
    return figure


def _draw(figure: go.Figure, place: NormPlace, y: float, *, own: bool) -> None:
    colour = STREAM if own else MASKED
    order = _ORDERS[place]
    title = f"<b>{_TITLES[place]}</b> · this model" if own else _TITLES[place]
    _write(figure, -0.5, y + 1.0, title, xanchor="left")
    for number, part in enumerate(order):
        x = number * _STEP
        if part in ("norm", "f", "+"):
            _box(figure, x, y, colour, round_=part == "+")
        _write(figure, x, y, part)
        if number:
            _arrow(figure, (x - _STEP + _HALF, y), (x - _HALF, y), colour)
    # The residual connection: from x over the sub-layer down to the sum.
    plus, above = order.index("+") * _STEP, y + 0.65
    path = f"M 0.25,{y + 0.2} L 0.25,{above} L {plus},{above}"
    figure.add_shape(type="path", path=path, line={"color": colour, "width": 2})
    _arrow(figure, (plus, above), (plus, y + 0.36), colour)


def _write(figure: go.Figure, x: float, y: float, text: str, **more: object) -> None:
    figure.add_annotation(x=x, y=y, text=text, showarrow=False, font=_LETTERS, **more)


def _box(figure: go.Figure, x: float, y: float, colour: str, *, round_: bool) -> None:
    half = _HALF - 0.1 if round_ else _HALF
    figure.add_shape(
        type="circle" if round_ else "rect",
        **{"x0": x - half, "x1": x + half, "y0": y - 0.35, "y1": y + 0.35},
        line={"color": colour, "width": 2},
        fillcolor=rgba(colour, 0.15),
    )


def _arrow(
    figure: go.Figure, start: tuple[float, float], end: tuple[float, float], colour: str
) -> None:
    figure.add_annotation(
        **{"x": end[0], "y": end[1], "ax": start[0], "ay": start[1]},
        **{"xref": "x", "yref": "y", "axref": "x", "ayref": "y"},
        showarrow=True,
        arrowhead=2,
        arrowwidth=2,
        arrowcolor=colour,
        text="",
    )
