"""Tokens as a row of small boxes: text, id and bytes. Pure: escaped HTML."""

import html
from collections.abc import Sequence

from model.run.token_bytes import Piece
from viz.notation.labels import token_label
from viz.notation.theme import KEY, MASKED, STREAM, rgba

_ROW = "display:flex;flex-wrap:wrap;gap:4px;padding:0;margin:0;list-style:none"
_BOX = (
    "display:flex;flex-direction:column;align-items:center;padding:4px 7px;margin:0;"
    "border-radius:4px;font-family:monospace;max-width:13rem;min-width:2.2rem"
)
_SMALL = "font-size:0.7rem;opacity:0.75;text-align:center;overflow-wrap:anywhere"
_TINTS = (rgba(STREAM, 0.20), rgba(STREAM, 0.09))


def token_strip(pieces: Sequence[Piece], name: str) -> str:
    """One box a token, in order. Torn characters are framed, added tokens dashed. name: what a
    screen reader calls the row."""
    boxes = "".join(_box(piece, number) for number, piece in enumerate(pieces))
    return f'<ol style="{_ROW}" aria-label="{html.escape(name)}">{boxes}</ol>'


def _box(piece: Piece, number: int) -> str:
    lines = [
        f'<span style="font-size:0.95rem">{html.escape(token_label(piece.spelled))}</span>',
        f'<span style="{_SMALL}">{piece.token.id}</span>',
    ]
    if piece.hexadecimal:
        lines.append(f'<span style="{_SMALL};font-size:0.62rem">{piece.hexadecimal}</span>')
    if piece.part_of:
        part = html.escape(token_label(piece.part_of))
        lines.append(f'<span style="{_SMALL}">part of {part}</span>')
    return f'<li style="{_BOX};{_paint(piece, number)}">{"".join(lines)}</li>'


def _paint(piece: Piece, number: int) -> str:
    if piece.token.special:
        return f"border:1px dashed {MASKED}"
    if piece.part_of:
        return f"border:1px solid {KEY};background:{rgba(KEY, 0.12)}"
    return f"border:1px solid transparent;background:{_TINTS[number % 2]}"
