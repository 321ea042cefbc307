"""Folders that live as long as a process of the tests."""

import atexit
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

_homes: dict[int, Path] = {}  # by process: a child that was forked has its own


def new_folder(prefix: str = "") -> Path:
    """An empty folder, removed when this process ends. Its name is short enough for the sockets of Ray."""
    process = os.getpid()
    if process not in _homes:
        _homes[process] = Path(mkdtemp(prefix="t_"))
        atexit.register(remove_folders)
    return Path(mkdtemp(prefix=prefix and f"{prefix}_", dir=_homes[process]))


def remove_folders() -> None:
    """Removes what this process has made."""
    if home := _homes.pop(os.getpid(), None):
        shutil.rmtree(home, ignore_errors=True)  # a cluster that is ending may still write
