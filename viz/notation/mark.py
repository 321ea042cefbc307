"""The app's own mark: the weights of four tokens as a causal model has them, the future hatched."""

from urllib.parse import quote

_SIDE = 4  # cells


def mark(ink: str = "currentColor") -> str:
    """The mark as SVG, in one colour. ink: as SVG names it."""
    seen = "".join(f"M0 {row}h{row + 1}v1h-{row + 1}z" for row in range(_SIDE))
    hidden = "".join(
        f"M{column} {row + 0.9}l.9-.9M{column + 0.35} {row + 1}l.65-.65"
        for row in range(_SIDE)
        for column in range(row + 1, _SIDE)
    )
    return (
        f'<svg class="mark" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE} {_SIDE}" aria-hidden="true">'
        f'<path d="{seen}" fill="{ink}"/><path d="{hidden}" stroke="{ink}" stroke-width=".12"/></svg>'
    )


def icon() -> str:
    """The mark as an address of an image, for the browser's tab: grey, which is seen on light and on dark."""
    return f"data:image/svg+xml,{quote(mark('#808088'))}"
