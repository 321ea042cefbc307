"""This computer."""

import io
import os
import platform
import sys
from pathlib import Path


def speak_utf8() -> None:
    """Lets a command write any letter, also where the console's encoding has few, as on Windows: what was
    computed would be lost at its first “é”."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def machine_bytes() -> int:
    """All its memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def processor() -> str:
    """The kind of its processor, as it calls itself."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor()
