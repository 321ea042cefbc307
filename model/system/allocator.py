"""What glibc does with memory that is freed. Where there is no glibc, nothing is done."""

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
    """Freed memory goes back to the system, gaps between used pieces included."""
    if library := _glibc():
        library.malloc_trim(0)


class _Account(ctypes.Structure):
    """The heap's own account, as glibc gives it (mallinfo2); free are the gaps between used pieces."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "free_pieces", "fast_pieces", "mapped_pieces", "mapped",
            "unused", "fast_free", "used", "free", "end",
        )
    )  # fmt: skip


def give_back_spare() -> None:
    """Freed memory goes back to the system where it is more than the next passes may use again. Without
    this the gaps that models and traces leave add up, however little of them is kept."""
    library = _glibc()
    if library is None or not hasattr(library, "mallinfo2"):  # an older glibc
        return
    library.mallinfo2.restype = _Account
    if library.mallinfo2().free > _KEPT:
        library.malloc_trim(0)


def reuse() -> None:
    """From now on, in the whole process, tables of a pass are made in memory that earlier ones freed.

    By itself glibc gives each large table back to the system, and each thread a heap of its own, so
    that every pass asks for new pages: at 1,024 tokens of a GPT-2-sized model 100,000 of them, a
    quarter of its time. To be called before other threads start.
    """
    if library := _glibc():
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
