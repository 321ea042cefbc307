"""Settings that make no sense, and an output without room: one sentence, or none needed."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import each
from tests.server import REPOSITORY, serving

SECONDS = 120


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of this computer at which somebody else listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


def said(**settings: str) -> str:
    """What a start with these settings, which must fail, writes."""
    ended = subprocess.run(
        [sys.executable, "-m", "viz.server"],
        cwd=REPOSITORY,
        env=os.environ | {"STREAMLIT_SERVER_HEADLESS": "true"} | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode not in (0, None)
    return (ended.stdout + ended.stderr).strip()


@each(
    ("variable", "value", "names"),
    [
        ("STREAMLIT_SERVER_PORT", "abc", "--server.port"),
        ("STREAMLIT_SERVER_PORT", "99999", "port 99999"),
        ("STREAMLIT_SERVER_ADDRESS", "nonsense.invalid", "nonsense.invalid"),
        ("STREAMLIT_SERVER_ADDRESS", "203.0.113.9", "203.0.113.9"),
        ("STREAMLIT_SERVER_HEADLESS", "perhaps", "--server.headless"),
        ("STREAMLIT_SERVER_SSL_CERT_FILE", "/nowhere", "sslCertFile"),
        ("STREAMLIT_LOGGER_LEVEL", "loud", "LOUD"),
        ("STREAMLIT_THEME_BASE", "pink", "pink"),
        ("ATTENTION_CACHE", __file__, "ATTENTION_CACHE is "),  # one of the app's own stands for all
    ],
)
def test_a_setting_that_makes_no_sense_ends_the_start_with_one_sentence(
    variable: str, value: str, names: str
) -> None:
    told = said(**{variable: value})
    assert names in told
    assert "Traceback" not in told
    assert "\n" not in told


def test_a_port_that_is_taken_is_told_in_one_line(taken_port: int) -> None:
    told = said(STREAMLIT_SERVER_ADDRESS="127.0.0.1", STREAMLIT_SERVER_PORT=str(taken_port))
    assert str(taken_port) in told
    assert "Traceback" not in told
    assert "\n" not in told


def test_an_output_without_room_does_not_keep_the_app_from_starting(tmp_path: Path) -> None:
    with serving(tmp_path / "log", program=("tests.faults.full_output",)) as server:
        assert server.process.poll() is None
