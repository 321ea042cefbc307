"""How glibc returns freed memory to the system. Without glibc nothing is done."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h
_LARGE = 32 * 2**20  # bytes of one table; more is not accepted
_KEPT = 256 * 2**20  # freed bytes that are not given back


@cache
def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:  # another system
        return None
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


def give_back() -> None:
    """Returns freed memory to the system, with the gaps between used pieces."""
    if library := _glibc():
        library.malloc_trim(0)


class _Account(ctypes.Structure):
    """glibc's mallinfo2; `free` are the gaps between used pieces."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "free_pieces", "fast_pieces", "mapped_pieces", "mapped",
            "unused", "fast_free", "used", "free", "end",
        )
    )  # fmt: skip


def give_back_spare() -> None:
    """Returns freed memory to the system where it is more than the next passes will need. Without this the
    gaps that models and traces leave behind add up, however few of these are kept."""
    library = _glibc()
    if library is None or not hasattr(library, "mallinfo2"):  # an older glibc
        return
    library.mallinfo2.restype = _Account
    if library.mallinfo2().free > _KEPT:
        library.malloc_trim(0)


def reuse() -> None:
    """Lets all passes of this process reuse the memory of earlier ones. Call it before other threads start.

    By itself glibc returns each large table to the system and gives each thread a heap of its own, so every
    pass asks for new pages. At 1,024 tokens of a GPT-2-sized model that takes a quarter of its time.
    """
    if library := _glibc():
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
