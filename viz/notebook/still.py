"""The picture of a widget where no widget can be shown: all weights of the chosen head, with their tokens,
and the chosen cell in words."""

import base64
import html
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.trace.records import Attention
from viz.notation.labels import tick_positions, token_label
from viz.notation.readout import readout
from viz.notation.theme import MASKED, QUANTITIES

_CELLS = 128  # rows and columns of a picture, at most
_LEAST, _LARGEST = 240, 420  # pixels of its longer side
_CELL = 26  # pixels of a cell, where there are few
_LABEL, _LETTER, _FONT = 14, 6.7, 11  # letters of a label; the size of a letter in pixels
_LABELS = 32


def still(
    attention: Attention,
    cell: tuple[int, int, int],
    *,
    queries: Sequence[str],
    keys: Sequence[str],
) -> str:
    """An image with a sentence below it, in HTML without scripts. cell: the chosen head, query and key."""
    head, query, key = cell
    words = readout(attention, head, query, key, queries=queries, keys=keys)
    picture = _picture(attention.weights(head), queries, keys)
    address = base64.b64encode(picture.encode()).decode()
    said = html.escape(words)
    return (
        f'<figure style="margin:8px 0"><img alt="Attention weights, row = query, column = key. {said}" '
        f'src="data:image/svg+xml;base64,{address}"><figcaption>{said}</figcaption></figure>'
    )


def _picture(weights: NDArray[np.float32], queries: Sequence[str], keys: Sequence[str]) -> str:
    """An SVG on white: the cells as one image, the tokens as text."""
    rows, columns = weights.shape
    side = min(max(_CELL * max(rows, columns), _LEAST), _LARGEST)
    cell = side / max(rows, columns)
    high, wide = rows * cell, columns * cell
    names = [[token_label(text, _LABEL) for text in texts] for texts in (queries, keys)]
    left, top = (10 + _LETTER * max(map(len, texts)) for texts in names)
    down = "".join(
        f'<text x="{left - 5:.1f}" y="{top + (row + 0.5) * cell + 4:.1f}" text-anchor="end">'
        f"{html.escape(names[0][row])}</text>"
        for row in tick_positions(rows, _LABELS)
    )
    across = "".join(
        f'<text transform="translate({left + (column + 0.5) * cell + 4:.1f} {top - 5:.1f}) rotate(-90)">'
        f"{html.escape(names[1][column])}</text>"
        for column in tick_positions(columns, _LABELS)
    )
    image = base64.b64encode(_png(weights)).decode()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 10:.0f}" '
        f'height="{top + high + 10:.0f}" font-family="monospace" font-size="{_FONT}" fill="#262730">'
        f'<rect width="100%" height="100%" fill="#fff"/>'
        f'<image x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{image}"/>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="none" '
        f'stroke="{MASKED}"/>{down}{across}</svg>'
    )


def _png(weights: NDArray[np.float32]) -> bytes:
    """The weights as a PNG, a pixel a cell: its palette is the colours of weights. Of a long text a pixel is
    the largest weight of a block."""
    for axis in (0, 1):
        step = -(-weights.shape[axis] // _CELLS)
        weights = np.maximum.reduceat(weights, range(0, weights.shape[axis], step), axis)
    pixels = np.rint(np.clip(weights, 0, 1) * 255).astype(np.uint8)
    rows, columns = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels], axis=1)  # filter 0 before each
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", _palette()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*one) for one in (*chunks, (b"IEND", b"")))


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def _palette() -> bytes:
    """256 colours from white on, of weights from 0 to 1."""
    stops = QUANTITIES["weight"].light
    places = [place for place, _ in stops]
    colours = np.array([_rgb(colour or "#ffffff") for _, colour in stops])
    levels = np.linspace(0, 1, 256)
    mixed = np.stack([np.interp(levels, places, channel) for channel in colours.T], axis=1)
    return np.rint(mixed).astype(np.uint8).tobytes()


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))
