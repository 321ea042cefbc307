"""What repeats is written once, with a count; what a visitor typed is never written."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from model.serving.engine import Event, Loaded, Passed, Refused
from viz.telemetry import logs

TYPED = "/home/anna/secret"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What loggers of libraries and of the app's events write, through a handler as the server has it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
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
    monkeypatch.setattr("viz.telemetry.logs.time.monotonic", lambda: now)
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


@pytest.mark.parametrize(
    "happened",
    [Loaded(TYPED, 1.0, 1), Passed(TYPED, 3, 1.0, 0.1), Refused(TYPED, "ValueError")],
)
def test_a_typed_folder_is_in_no_line(happened: Event, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logs.OWN):
        logs.note(happened)
    line = logs.JsonLines().format(caplog.records[-1])
    assert TYPED not in line
    assert json.loads(line)["model"] == "other"


def test_a_model_that_everybody_knows_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logs.OWN):
        logs.note(Loaded("minilm", 1.0, 1))
    assert json.loads(logs.JsonLines().format(caplog.records[-1]))["model"] == "minilm"
