"""A sentence with arcs from one token to those that it attends to, as SVG. An arc is as wide as its
weight."""

# The explorer has code of its own for arcs (viz/explorer/js/arcs.js). There they lie beneath chips that
# the browser has laid out, above a line and below it, and change with every click. Here the words have
# their places before an arc is drawn, so an arc to another line can go around them, in a gutter that
# exists only where there are several lines, and Home shows all of it without the explorer's script. What
# both share is the meaning of an arc: WIDEST, FAINT, and an opacity of 0.25 to 1.

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from viz.notation.labels import token_label

LETTERS = 18  # pixels of the letters' size
LETTER = 10.9  # pixels: how wide a letter of that size is
WIDTHS = {"wide": 860, "narrow": 360}  # pixels of a line, on a screen and on a phone
LINE = 118  # pixels from one line to the next
GUTTER = (
    26  # pixels on the left of several lines: arcs from line to line go there, beside the words
)
LANE, BEND = 22, 12  # pixels: how far above a line they run, and the radius of their bends
RISE = 70  # pixels that the longest arcs rise
WIDEST = 12  # pixels of an arc of weight 1
FAINT = 0.01  # arcs of smaller weights could not be seen
LONGEST = 24  # characters of a token: fewer than fit a line on a phone


@dataclass(frozen=True)
class Box:
    """Where a token stands: the middle of its upper edge, and its width."""

    x: float
    y: float
    width: float


def arc_line(
    tokens: Sequence[str],
    weights: NDArray[np.float32],
    chosen: int,
    *,
    width: int = WIDTHS["wide"],
    said: str = "",
) -> str:
    """The sentence as an SVG, in as many lines as it needs.

    weights (token, token): of one head; a row sums to 1. chosen: the token whose arcs are shown while the
    pointer is elsewhere. width: of a line, in pixels. said: what follows the last token, for instance
    the prediction.
    Raises ValueError if the weights do not belong to so many tokens.
    """
    if weights.shape != (len(tokens), len(tokens)):
        raise ValueError(f"Weights of shape {weights.shape} do not belong to {len(tokens)} tokens.")
    labels = [token_label(token, LONGEST) for token in tokens]
    boxes = _laid_out([*labels, said] if said else labels, width)
    if boxes[-1].y > boxes[0].y:
        boxes = _laid_out([*labels, said] if said else labels, width, GUTTER)
    positions = range(len(labels))
    arcs = [_arcs(boxes, weights[at], at, at == chosen) for at in positions]  # below the words
    words = [_token(labels, boxes[at], weights[at], at, at == chosen) for at in positions]
    if said:
        words.append(_said(said, boxes[-1]))
    height = boxes[-1].y + 2 * LETTERS + 8
    return (
        f'<svg class="arc-line" viewBox="0 0 {width} {height:.0f}" role="group" '
        f'aria-label="The sentence; each token shows what it attends to">{"".join([*arcs, *words])}</svg>'
    )


def _laid_out(labels: Sequence[str], line: int, margin: float = 0.0) -> list[Box]:
    """Side by side, in lines of this width. margin: on their left."""
    boxes, left, top = list[Box](), margin, float(RISE + 8)
    for label in labels:
        width = (len(label) + 1.2) * LETTER
        if left > margin and left + width > line:
            left, top = margin, top + LINE
        boxes.append(Box(left + width / 2, top, width))
        left += width
    return boxes


def _arcs(boxes: Sequence[Box], row: NDArray[np.float32], at: int, chosen: bool) -> str:
    arcs = "".join(
        _arc(boxes[at], boxes[key], float(weight), key == 0)
        for key, weight in enumerate(row)
        if weight >= FAINT
    )
    return f'<g class="{"arcs shown" if chosen else "arcs"}">{arcs}</g>'


def _token(
    labels: Sequence[str], here: Box, row: NDArray[np.float32], at: int, chosen: bool
) -> str:
    """A button. Only the chosen one is reached with Tab, the others with the arrow keys."""
    kind = "token shown chosen" if chosen else "token"
    return (
        f'<g class="{kind}" role="button" tabindex="{0 if chosen else -1}" data-token="{at}" '
        f'aria-label="{escape(_in_words(labels, row, at))}">'
        f'<rect x="{here.x - here.width / 2 + 1:.1f}" y="{here.y:.1f}" '
        f'width="{here.width - 2:.1f}" height="{LETTERS + 10}" rx="5"></rect>'
        f'<text x="{here.x:.1f}" y="{here.y + LETTERS + 1:.1f}">{escape(labels[at])}</text></g>'
    )


def _arc(start: Box, end: Box, weight: float, is_first: bool) -> str:
    """From the upper edge of one token to that of another, rising with the distance; to another line it
    goes around the words."""
    rise = min(18 + 0.28 * abs(start.x - end.x), RISE) * 4 / 3
    if start == end:
        path = f"M{start.x - 5:.1f},{start.y:.1f} c-12,{-rise:.1f} 22,{-rise:.1f} 10,0"
    elif start.y != end.y:
        path = _around(start, end)
    else:
        path = (
            f"M{start.x:.1f},{start.y:.1f} C{start.x:.1f},{start.y - rise:.1f} "
            f"{end.x:.1f},{end.y - rise:.1f} {end.x:.1f},{end.y:.1f}"
        )
    kind = ' class="first"' if is_first else ""
    return (
        f'<path{kind} d="{path}" stroke-width="{weight * WIDEST:.2f}" '
        f'stroke-opacity="{0.25 + 0.75 * weight:.2f}"><title>{weight:.4f}</title></path>'
    )


def _around(start: Box, end: Box) -> str:
    """Up from one token, along its line to the gutter, there to the other line, and down to the other."""
    corners = [
        (start.x, start.y - LANE),
        (GUTTER / 2, start.y - LANE),
        (GUTTER / 2, end.y - LANE),
        (end.x, end.y - LANE),
    ]
    ways = [(0, -1), (-1, 0), (0, 1 if end.y > start.y else -1), (1, 0), (0, 1)]
    path = f"M{start.x:.1f},{start.y:.1f}"
    for (x, y), ((in_x, in_y), (out_x, out_y)) in zip(corners, pairwise(ways), strict=True):
        path += (
            f" L{x - BEND * in_x:.1f},{y - BEND * in_y:.1f}"
            f" Q{x:.1f},{y:.1f} {x + BEND * out_x:.1f},{y + BEND * out_y:.1f}"
        )
    return f"{path} L{end.x:.1f},{end.y:.1f}"


def _said(said: str, box: Box) -> str:
    return f'<text class="said" x="{box.x:.1f}" y="{box.y + LETTERS + 1:.1f}">{escape(said)}</text>'


def _in_words(labels: Sequence[str], row: NDArray[np.float32], chosen: int) -> str:
    largest = np.argsort(-row)[:3]
    found = ", ".join(f"{labels[key]} {row[key]:.2f}" for key in largest if row[key] >= FAINT)
    return f"Token {chosen}, {labels[chosen]}, attends to: {found or 'nothing'}"
