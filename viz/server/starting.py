"""A start that fails ends with one sentence. A start without room for its output goes on without output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from streamlit import config


@contextmanager
def starting() -> Iterator[None]:
    """Ends the process with a sentence on standard error where the body fails before the server is up. Later
    failures belong to the log."""
    before = sys.excepthook
    sys.stdout = _Unfailing(sys.stdout)
    try:
        yield
    except click.Abort:
        sys.exit(1)
    except Exception as error:
        if sys.excepthook is not before:
            raise
        sys.exit(f"The app cannot start: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Why a start failed, in one line. The address is added, because the system's message lacks it."""
    told = error.format_message() if isinstance(error, click.ClickException) else str(error)
    said = " ".join(told.split()) or type(error).__name__
    if isinstance(error, OSError | OverflowError) and not isinstance(error, FileNotFoundError):
        address, port = config.get_option("server.address"), config.get_option("server.port")
        said = f"it cannot listen on {address}, port {port} ({said})"
    return said if said.endswith(".") else f"{said}."


class _Unfailing:
    """Standard output that stays silent after the system has refused a write."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._tried(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        self._tried(self._stream.flush)

    def _tried(self, act: Any) -> Any:
        try:
            return act()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            return None
