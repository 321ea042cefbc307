"""One setting: its variable, its meaning, its default, and how a written value is read."""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

MEGABYTE = 1_000_000
LEAST_TRACE_MB, MOST_TRACE_MB = 300, 2000
Metrics = Literal["local", "on", "off"]
Read = Callable[[str], object]


@dataclass(frozen=True)
class Setting:
    """One environment variable: what it means, how its value is read, what counts without one.

    `default` is given whether the server listens on this computer alone.
    """

    variable: str
    meaning: str
    told: str  # the default, in words
    read: Read
    default: Callable[[bool], object]


def always(value: object) -> Callable[[bool], object]:
    return lambda local: value


def switch(written: str) -> bool:
    if written not in ("on", "off"):
        raise ValueError("it must be on or off")
    return written == "on"


def _whole(written: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", written) or not least <= int(written) <= most:
        raise ValueError(f"it must be a whole number from {least:,} to {most:,}")
    return int(written)


def number(least: int, most: int) -> Read:
    return partial(_whole, least=least, most=most)


def names_of(written: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in written.split(","))
    if "" in names:
        raise ValueError("it must be names with commas between them")
    return names


def metrics_of(written: str) -> str:
    if written not in ("local", "on", "off"):
        raise ValueError("it must be local, on or off")
    return written


def device_of(written: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", written):
        raise ValueError("it must be auto, cpu, cuda, or cuda:1 and the like")
    return written


def address_of(written: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", written):
        raise ValueError("it must be an address that begins with http:// or https://")
    try:
        _ = urlsplit(written).port
    except ValueError as error:
        raise ValueError("it must be an address that a browser would open") from error
    return written.rstrip("/")


def check_folder(path: Path) -> None:
    """Raises ValueError for what exists and is no folder that can be read. One that does not exist is made
    when it is needed."""
    try:
        made = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ValueError(f"it must be a folder ({error.strerror})") from error
    if not stat.S_ISDIR(made.st_mode) or not os.access(path, os.R_OK | os.X_OK):
        raise ValueError("it must be a folder that can be read")


def default_trace_megabytes() -> int:
    """A tenth of the machine's memory: a trace of 1,024 tokens of a GPT-2 takes 440 MB, and two of
    them lie side by side where a run is changed."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MEGABYTE
    return min(max(machine // 10, LEAST_TRACE_MB), MOST_TRACE_MB)


def is_loopback(address: str) -> bool:
    """Whether an address reaches this computer alone."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"
