"""The name of a visitor's act, from the click to the pass that answers it: it stands in the log lines of
every process that works for it. It is drawn by chance, and tells nothing about the visitor.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_click: ContextVar[str] = ContextVar("click", default="")


def click() -> str:
    """The act for which this thread works; "" where nobody has clicked."""
    return _click.get()


@contextmanager
def clicked(name: str = "") -> Iterator[None]:
    """The body works for an act: a new one, or that of another process."""
    token = _click.set(name or secrets.token_hex(6))
    try:
        yield
    finally:
        _click.reset(token)
