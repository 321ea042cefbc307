"""One process has one engine."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from viz.state import engine as module
from viz.state.engine import Engine, engine, forget_engine


@pytest.fixture(autouse=True)
def no_engine() -> Iterator[None]:
    forget_engine()
    yield
    forget_engine()


def test_two_who_ask_at_the_same_moment_get_the_same_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server loads the first model in a thread, while somebody asks whether it is ready: with two engines
    it never was."""
    both = threading.Event()
    made: list[Engine] = []

    def slow(**how: Any) -> Engine:
        made.append(Engine(**how))
        if len(made) > 1:
            both.set()
        both.wait(0.5)  # long enough for the other to come in where nothing keeps it out
        return made[-1]

    monkeypatch.setattr(module, "Engine", slow)
    found: list[Engine] = []
    threads = [threading.Thread(target=lambda: found.append(engine())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert found[0] is found[1]
