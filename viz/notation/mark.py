"""The app's own mark: the weights of four tokens as a causal model has them, the future hatched."""

from urllib.parse import quote

_SIDE = 4  # cells


def mark(ink: str) -> str:
    """The mark in one colour, as the address of an SVG image. ink: the colour as SVG names it."""
    seen = "".join(f"M0 {row}h{row + 1}v1h-{row + 1}z" for row in range(_SIDE))
    hidden = "".join(
        f"M{column} {row + 0.9}l.9-.9M{column + 0.35} {row + 1}l.65-.65"
        for row in range(_SIDE)
        for column in range(row + 1, _SIDE)
    )
    return "data:image/svg+xml," + quote(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE} {_SIDE}"><path d="{seen}" '
        f'fill="{ink}"/><path d="{hidden}" stroke="{ink}" stroke-width=".12"/></svg>'
    )
