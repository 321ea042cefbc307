"""What is made once for all processes of a run of the tests."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = "ATTENTION_TEST_RUN"  # variable by which the workers know the folder of their run


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="attention-tests-")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)


def place(name: str) -> Path:
    """Where what has this name lies, once it is whole."""
    return Path(os.environ[FOLDER]) / name


def once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that all workers of a run share. The first that asks makes it; the others wait for that."""
    whole, half = place(name), place(f"{name}.half")
    with place(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            make(half)
            half.rename(whole)
    return whole
