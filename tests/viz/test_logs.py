"""A place that writes the same line again and again is heard once, with a count."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from viz import logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What loggers of libraries and of the app's events write, through a handler as the server has it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.Lines())
    handler.addFilter(logs.Repeats())
    loggers = [logging.getLogger("some.library"), logging.getLogger(logs.OWN)]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    yield stream
    for logger in loggers:
        logger.removeHandler(handler)


def lines(written: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def fail(kind: type[Exception]) -> None:
    try:
        raise kind
    except kind:
        logging.getLogger("some.library").exception("Something failed")


def test_one_line_stands_for_many_and_the_next_one_counts_them(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("viz.logs.time.monotonic", lambda: now)
    for _ in range(1_000):
        fail(OSError)
    fail(KeyError)  # another failure in the same place
    assert [line["error"] for line in lines(written)] == ["OSError", "KeyError"]
    now += logs.SECONDS_BETWEEN
    fail(OSError)
    assert lines(written)[-1]["kept_back"] == 999
    assert "kept_back" not in lines(written)[0]


def test_every_event_of_the_app_is_written(written: io.StringIO) -> None:
    for number in range(3):
        logs.event("passed", number=number)
    assert [line["number"] for line in lines(written)] == [0, 1, 2]
