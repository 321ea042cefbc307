"""How large a process of the unit tests is, and how it becomes small again between two tests."""

import ctypes
import functools
import gc
import sys
from contextlib import suppress
from pathlib import Path

_MMAP_THRESHOLD = -3  # of malloc.h
# Megabytes: from here on models are forgotten; and where a file of tests fails.
LARGE, MOST = 900, 1_500
MORE = 150  # than was left the last time: what a file's own fixtures hold stays
_left = [0]
_SIZES = Path("/proc/self/status")  # Linux only


def megabytes() -> int:
    """The memory of this process alone now; 0 where the system does not tell it. The pages of files that it
    has read, PyTorch's code above all, are shared by all workers and can be dropped."""
    lines = _SIZES.read_text().splitlines() if _SIZES.is_file() else []
    return sum(int(line.split()[1]) // 1000 for line in lines if line.startswith("RssAnon"))


def grows() -> bool:
    """Whether it is time to forget what is kept."""
    return megabytes() > max(LARGE, _left[0] + MORE)


def return_large_tables() -> None:
    """From now on glibc returns each table of a megabyte once it is freed, and leaves no gaps."""
    with suppress(OSError, AttributeError):  # another system
        ctypes.CDLL("libc.so.6").mallopt(_MMAP_THRESHOLD, 2**20)


def forget_models() -> None:
    """Forgets what the tests and the app keep of models and traces; both make it again."""
    import streamlit as st  # the laws of the house need none of these

    from model.serving.engine import Engine
    from model.system import allocator
    from viz.state.engine import forget_engine
    from viz.telemetry import metrics

    kept = functools._lru_cache_wrapper
    tests = [
        module
        for name, module in sys.modules.items()
        if name.startswith(("tests.", "bench.", "tools."))
    ]
    for cached in {one for module in tests for one in vars(module).values() if type(one) is kept}:
        cached.cache_clear()
    forget_engine()
    metrics.watch(Engine())  # /metrics would keep the one that was forgotten
    st.cache_resource.clear()
    gc.unfreeze()  # what was frozen when a model was loaded may be garbage by now
    gc.collect()
    allocator.give_back()
    _left[0] = megabytes()
