"""The colours of all pictures. Their meanings are fixed, and they suit colour-blind readers.

Pictures that Streamlit draws take their strong colours from the theme, so that they fit a light and a
dark page without being drawn anew: .streamlit/config.toml repeats them, and a test holds it to that.

Query blue, key vermillion and value green are of Okabe and Ito's palette. Weights run from the page's
background up to one purple; scores, vectors and differences diverge around 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

QUERY = "#0072B2"
KEY = "#D55E00"
VALUE = "#009E73"
SCORE = "#7B5EA7"
WEIGHT = "#6A51A3"
PROBABILITY = "#4F6D8A"  # of tokens, and losses, which come of it
OUTPUT = "#4D8B31"
STREAM = "#A8467A"  # vectors of tokens: embeddings, the residual stream, hidden neurons
FEED_FORWARD = "#C08A00"  # what a feed-forward sub-layer adds
MORE, LESS = "#B2182B", "#2166AC"  # differences: red where the changed run has more
MASKED = "#8C8C94"
REFERENCE = "#C9A227"  # the reference alignment
ERRATUM = "#E5354B"  # frames an erratum of the notes
INPUT, TARGET, DARK = "#DDA6C3", "#C6C6CD", "#1B1B20"  # two pale areas, and dark letters on them
BLACK, WHITE = "#222222", "#FFFFFF"  # letters and background of a page that has no theme
# Curves without a meaning of their own: Okabe and Ito's palette without the colours that stand for query, key
# and value; without grey, which is what is masked.
CURVES = ("#CC79A7", "#56B4E9", "#E69F00", "#8A5A44", "#8E6BBF", "#B2A000")
# Heads, or groups of heads, side by side (Paul Tol's bright scheme, and six hues between its own); after the
# last the first comes again.
HEADS = (
    *("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377"),
    *("#EE7733", "#332288", "#44AA99", "#8C5A2B", "#B58BD9", "#888811"),
)

QuantityName = Literal["query", "key", "value", "score", "weight", "output", "stream", "difference"]
Stops = tuple[tuple[float, str], ...]
PAGE = ""  # the page's background, which only the browser knows


@dataclass(frozen=True)
class Quantity:
    """The colours of one quantity. `ink` is for letters, which need more contrast than areas."""

    hue: str
    ink: tuple[str, str]  # on a light page, on a dark page
    light: Stops  # position on the scale 0–1 and colour; PAGE is the page's background
    dark: Stops
    diverging: bool = True


def _diverging(least: str, less: str, more: str, most: str) -> Stops:
    """A scale that is steeper near 0, so that small numbers of a wide range remain visible."""
    return ((0.0, least), (0.33, less), (0.5, PAGE), (0.67, more), (1.0, most))


def _vectors(
    hue: str, ink: tuple[str, str], light: tuple[str, str], dark: tuple[str, str]
) -> Quantity:
    """A quantity whose negative numbers are grey."""
    grey, dusk = ("#4A4845", "#B9B6B1"), ("#DAD4CA", "#77726A")
    return Quantity(hue, ink, _diverging(*grey, *light), _diverging(*dusk, *dark))


QUANTITIES: dict[QuantityName, Quantity] = {
    "query": _vectors(
        QUERY, ("#005E94", "#6CBBEA"), ("#6DB0D9", "#00517F"), ("#1F6A99", "#84CFFF")
    ),
    "key": _vectors(KEY, ("#AD4B00", "#FF9F5C"), ("#F0A26A", "#A04500"), ("#A34F0E", "#FFB680")),
    "value": _vectors(
        VALUE, ("#00724F", "#45D3A8"), ("#68C2A4", "#006448"), ("#0E7B5C", "#83EBC8")
    ),
    "score": Quantity(
        SCORE,
        ("#5D4391", "#BBA6EE"),
        _diverging("#8A3F00", "#F0AE6E", "#A99BD3", "#44287D"),
        _diverging("#FFCB94", "#A4601F", "#6C56AE", "#D6C9FF"),
    ),
    "weight": Quantity(
        WEIGHT,
        ("#593F95", "#B7A2EE"),
        ((0.0, PAGE), (0.1, "#DCD6EC"), (0.35, "#A695CF"), (0.7, "#6A51A3"), (1.0, "#3C1D75")),
        ((0.0, PAGE), (0.1, "#352D50"), (0.35, "#5F4C9A"), (0.7, "#9C82DB"), (1.0, "#E6DCFF")),
        diverging=False,
    ),
    "output": _vectors(
        OUTPUT, ("#3A6E22", "#A3D587"), ("#9AC586", "#2C5A1B"), ("#4C7F35", "#C2EEA6")
    ),
    "stream": _vectors(
        STREAM, ("#8F3565", "#F0A3CB"), ("#DA9ABF", "#7A2453"), ("#97447A", "#FFB9DF")
    ),
    "difference": Quantity(
        MORE,
        ("#A11226", "#FF9C92"),
        _diverging("#1B4A88", "#8CB5DE", "#E89A92", "#A11226"),
        _diverging("#A3CEFF", "#2F6AB0", "#AE4141", "#FFB5AB"),
    ),
}

# Streamlit replaces these by colours of the theme in which the page is shown: the chart colours of
# .streamlit/config.toml, the page's background, and the colour of its headings, elsewhere nearly black.
PAPER, INK = "#000038", "#000037"
# The places of a theme's ten colours on the scale of weights: its stops, and places between them.
_STEPS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
_NEGATIVE: dict[QuantityName, str] = {"score": "#B35806", "difference": LESS}
_CONTRAST = "#7A7772"  # the neutral side of the scales of vectors
_ENDS: list[tuple[QuantityName, int]] = [
    *((name, -1) for name, quantity in QUANTITIES.items() if quantity.diverging),
    *((name, 0) for name in (*_NEGATIVE, "query")),  # all vectors have the neutral end of the query
]


def chart_colours(theme: Literal["light", "dark"]) -> list[str]:
    """The strong ends of the diverging scales: first the positive, then the negative ones."""
    stops = {name: getattr(quantity, theme) for name, quantity in QUANTITIES.items()}
    return [stops[name][end][1] for name, end in _ENDS]


def weight_steps(theme: Literal["light", "dark"]) -> list[str]:
    """Ten colours of the scale of weights, from 0.1 to 1. At 0 it has the page's background."""
    return weight_colours(theme, _STEPS)


def weight_colours(theme: Literal["light", "dark"], weights: Sequence[float]) -> list[str]:
    """The colours of weights (weight,). Below 0.1 they run up from white."""
    stops = getattr(QUANTITIES["weight"], theme)
    places = [place for place, _ in stops]
    channels = np.array([list(bytes.fromhex((hue or WHITE)[1:])) for _, hue in stops])
    mixed = np.array([np.interp(weights, places, channel) for channel in channels.T]).T
    return ["#" + "".join(f"{round(channel):02X}" for channel in colour) for colour in mixed]


def colorscale(quantity: QuantityName, *, lowest: float = -1.0) -> list[list[float | str]]:
    """A Plotly colour scale for a picture on a page. Zero has the colour of the page, and the ends are
    strong on a light and on a dark page. `colours_on_white` are those of a file. lowest: where a diverging
    scale begins, from -1 to 0; each value keeps its colour.

    Plotly mixes neighbouring colours channel by channel, opacity too. A hue may fade out; but from a
    transparent purple to the solid colour of the page it would be darkest on the way.
    """
    if not QUANTITIES[quantity].diverging:
        steps: list[list[float | str]] = [
            [share, _place(len(_ENDS) + number)] for number, share in enumerate(_STEPS)
        ]
        return [[0.0, PAPER], *steps]
    hue, least = QUANTITIES[quantity].hue, _NEGATIVE.get(quantity, _CONTRAST)
    down = (quantity if quantity in _NEGATIVE else "query", 0)
    zero = lowest / (lowest - 1) if lowest else 0.0
    begins = _place(_ENDS.index(down)) if lowest == -1 else rgba(least, abs(lowest))
    below: list[list[float | str]] = [[0.0, begins], [zero, rgba(least, 0.0)]] if lowest else []
    return [*below, [zero, rgba(hue, 0.0)], [1.0, _place(_ENDS.index((quantity, -1)))]]


def rising_scale(hue: str) -> list[list[float | str]]:
    """A scale that begins at 0, without colour."""
    return [[0.0, rgba(hue, 0.0)], [1.0, rgba(hue, 1.0)]]


def vector_scale(hue: str) -> list[list[float | str]]:
    """The same scale in a colour of no quantity: grey below 0."""
    return [
        [0.0, rgba(_CONTRAST, 1.0)],
        [0.5, rgba(_CONTRAST, 0.0)],
        [0.5, rgba(hue, 0.0)],
        [1.0, rgba(hue, 1.0)],
    ]


def colours_on_white() -> dict[str, str]:
    """The colours of a light page by their placeholders, which Streamlit would otherwise fill in."""
    colours = [*chart_colours("light"), *weight_steps("light")]
    return {_place(number): colour for number, colour in enumerate(colours)} | {PAPER: WHITE}


def _place(number: int) -> str:
    """The placeholder of a theme's colour: its chart colours first, then the steps of the weights."""
    return f"#{number + 1:06d}"


def rgba(colour: str, alpha: float) -> str:
    """A colour "#RRGGBB" with an opacity between 0 and 1, as CSS and Plotly read it."""
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},{alpha:g})"
