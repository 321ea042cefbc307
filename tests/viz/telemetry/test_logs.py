"""What repeats is written once, with a count; what a visitor typed is never written."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from prometheus_client import generate_latest

from model.serving.engine import Event, Loaded, Passed, Refused
from viz.telemetry import logs, metrics

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


def test_what_is_filled_into_a_message_is_in_no_line(written: io.StringIO) -> None:
    logging.getLogger("some.library").warning("no folder %s", TYPED)
    (line,) = lines(written)
    assert line["says"] == "no folder %s"
    assert TYPED not in written.getvalue()


def test_every_event_of_the_app_is_written(written: io.StringIO) -> None:
    for number in range(3):
        logs.event("passed", number=number)
    assert [line["number"] for line in lines(written)] == [0, 1, 2]


@pytest.mark.parametrize(
    "happened", [Loaded(TYPED, 1.0, 1), Passed(TYPED, 3, 1.0, 0.1), Refused(TYPED, "ValueError")]
)
def test_a_typed_folder_is_in_no_line_and_in_no_number(
    happened: Event, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logs.OWN):
        logs.note(happened)
    line = logs.JsonLines().format(caplog.records[-1])
    assert TYPED not in line
    assert json.loads(line)["model"] == "other"
    metrics.count(happened)
    assert TYPED not in generate_latest(metrics.REGISTRY).decode()


def test_a_model_that_everybody_knows_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logs.OWN):
        logs.note(Loaded("minilm", 1.0, 1))
    assert json.loads(logs.JsonLines().format(caplog.records[-1]))["model"] == "minilm"


def test_an_open_page_is_one_websocket_and_a_request_is_none() -> None:
    told: list[float | None] = []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        opened = scope["type"] == "websocket"
        await send(
            {"type": "websocket.accept"}
            if opened
            else {"type": "http.response.start", "status": 200}
        )
        told.append(metrics.REGISTRY.get_sample_value("attention_sessions"))

    async def ask() -> None:
        for kind in ("http", "websocket", "http"):
            await metrics.Counting(answer)({"type": kind, "path": "/"}, quiet, quiet)

    async def quiet(*said: Any) -> Any: ...

    before = metrics.REGISTRY.get_sample_value("attention_sessions")
    assert before is not None
    anyio.run(ask)
    assert told == [before, before + 1, before]
    assert metrics.REGISTRY.get_sample_value("attention_sessions") == before
