"""Freed memory, given back to the system before a large table is made."""

import ctypes
from collections.abc import Callable
from functools import cache

_LARGE = 64_000_000  # bytes of a table that are worth the few milliseconds


def make_room(numbers: int) -> None:
    """Called before a table of so many float32 numbers is made while a pass is recorded.

    The tensors that a recorder keeps lie among freed ones, and glibc holds on to the gaps: at 1,024
    tokens of a GPT-2-sized model a tenth of the peak. Where there is no glibc, nothing is done.
    """
    if 4 * numbers >= _LARGE:
        _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    try:
        trim: Callable[[int], object] = ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):  # another system, or another C library
        return lambda left: None
    return trim
