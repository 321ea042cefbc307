"""Numbers as text: four decimals, none for whole numbers, powers of ten for very large and small ones.

They have a true minus sign, as in the explorer (viz/explorer/js/numbers.js).
"""

import gettext
import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.analysis.run_comparison import probability_rounding
from model.system.words import file_of_words

DECIMALS = 4
_MOST_DECIMALS = 8
_ROUNDING = 1e-9  # rounding error of float64 arithmetic
_SMALLEST, _LARGEST = 5e-5, 1e12  # beyond these a number is written as a power of ten
_MINUS = "−"
NAMED = 3  # of several equal ones


def number(value: float) -> str:
    """A single number: 3 as "3", 0.5 as "0.5000", and with more decimals where it would look whole without:
    0.99995."""
    size = abs(value)
    if size >= _LARGEST or (value < 0 and size >= 1e6) or 0 < size < _SMALLEST:
        return power_of_ten(value)
    return signed(f"{value:,.{_decimals(value)}f}")


def settled(error: float, most: int = DECIMALS) -> int:
    """How many decimals are certain, given an error: the last one to within 1."""
    return most if error <= 0 else int(np.clip(-np.ceil(np.log10(error)), 0, most))


def certain(value: float, error: float) -> str:
    """A number with the decimals that are certain, given its error."""
    return signed(f"{value:.{settled(error)}f}")


def agreeing(value: float, recorded: float) -> tuple[str, str]:
    """Two computations of one number with the decimals that are certain: float32 holds no more of the
    recorded one, and the other lies some way from it."""
    error = max(abs(value - recorded), float(np.spacing(np.float32(abs(recorded)))))
    return certain(value, error), certain(recorded, error)


def fixed(value: float, decimals: int) -> str:
    """A number that is not negative, with so many decimals; "<0.001" where they would show a 0 that it is
    not."""
    text = f"{value:.{decimals}f}"
    return text if value <= 0 or float(text) else f"<{10**-decimals:.{decimals}f}"


def nats(value: float, error: float) -> str:
    """A loss, an entropy or a divergence, with the decimals that are certain."""
    return fixed(max(value, 0.0), settled(error))


def probability(share: float, error: float, most: int = DECIMALS) -> str:
    """A probability with the decimals that are certain. error: that of its logarithm."""
    return fixed(share, settled(probability_rounding(share, error), most))


def significant(error: float) -> int:
    """How many significant digits are certain, at least one. error: that of the number's logarithm."""
    return max(settled(error), 1)


def rounded(value: float, error: float, most: int) -> str:
    """A large number with the digits that are certain: 12345.6 with an error of 300 is 12,000."""
    if error < 1:
        return f"{value:,.{settled(error, most)}f}"
    return f"{round(value, -int(np.ceil(np.log10(error)))):,.0f}"


def difference(value: float) -> str:
    """A largest difference, such as "4e−7"; "0" if there is none. It is a bound, so it is rounded up."""
    return power_of_ten(value, 1, rounding=ROUND_UP)


def power_of_ten(value: float, digits: int = 2, *, rounding: str = ROUND_HALF_EVEN) -> str:
    """At most so many significant digits and a power of ten: "4.2e−8", "−1e9"; "0" for 0, "inf", "nan"."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return signed(str(value))
    rounded = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    mantissa, _, exponent = f"{rounded:.{digits - 1}e}".partition("e")
    short = mantissa.rstrip("0").rstrip(".") if digits > 1 else mantissa
    return signed(f"{short}e{int(exponent)}")


def signed(text: str) -> str:
    """A number as Python writes it, with a true minus sign, and with none before a zero."""
    return re.sub(r"^-(?=[0.]+%?$)", "", text).replace("-", _MINUS)


def sign_of_sum(parts: Iterable[str], total: str) -> str:
    """ "=" where the printed parts add up to the printed total, else "≈"."""
    *added, whole = (text.replace(_MINUS, "-").replace(",", "") for text in (*parts, total))
    exact = not any("<" in text for text in added) and sum(map(Decimal, added)) == Decimal(whole)
    return "=" if exact else "≈"


def moves(before: float, after: float, decimals: int = 3) -> str:
    """How a number changes: "goes from 0.995 to 0.012", or "stays at 1.000"."""
    old, new = (signed(f"{value:.{decimals}f}") for value in (before, after))
    return f"stays at {old}" if old == new else f"goes from {old} to {new}"


_form_of = cache(gettext.c2py)  # the plural of a number, by a rule as gettext writes it


def counted(count: int, what: str) -> str:
    """A count in words: "1 token", "2 tokens", "no tokens"."""
    words = file_of_words("counts")
    form = _form_of(words["rule"]["plural"])(count)
    text = words[f"form_{form}" if count else "none"][what]
    return text.replace("{$n}", f"{count:,}".replace(",", words["rule"]["thousands"]))


def numbers(values: NDArray[np.float64]) -> list[list[str]]:
    """values (row, column), or fewer axes, as rows of text, each as `number` writes it."""
    return [[number(float(value)) for value in row] for row in np.atleast_2d(values)]


def _decimals(value: float) -> int:
    if abs(value - round(value)) < _ROUNDING:
        return 0
    for decimals in range(DECIMALS, _MOST_DECIMALS + 1):
        if round(value, decimals) != round(value):
            return decimals
    return DECIMALS


def leaders(values: ArrayLike, *, decimals: int) -> tuple[int, ...]:
    """The positions of the largest values. Values that are printed alike count as equal."""
    printed = np.round(np.asarray(values, dtype=np.float64), decimals)
    return tuple(map(int, np.flatnonzero(printed == printed.max())))


def led_by(names: Sequence[str], values: ArrayLike, *, decimals: int) -> tuple[str, bool]:
    """Who has the largest value, in Markdown, and whether that is more than one."""
    places = leaders(values, decimals=decimals)
    if len(places) == len(names) > 1:
        return f"**all {len(names)} alike**", True
    if len(places) > NAMED:
        return f"**{len(places)} of {len(names)} alike**", True
    return " and ".join(f"**{names[place]}**" for place in places), len(places) > 1
