"""Numbers as words of a sentence. Pure."""

from decimal import ROUND_UP, Context

_ONE_DIGIT = Context(prec=1, rounding=ROUND_UP)


def difference(value: float) -> str:
    """A largest difference: "4e-07", and "0" where there is none at all. It stands as a bound, so it is
    rounded up: what is said to differ by at most 4e-07 differs by no more."""
    if value == 0:
        return "0"
    return f"{_ONE_DIGIT.create_decimal(repr(float(value))):.0e}".replace("e+", "e")
