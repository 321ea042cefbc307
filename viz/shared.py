"""The one engine of this process, shared by the server and every session."""

from functools import cache

from model.engine import Engine


@cache
def engine() -> Engine:
    return Engine()
