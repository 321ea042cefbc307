"""Settings that make no sense, and an output without room: one sentence, or none needed."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server import REPOSITORY, serving

pytestmark = pytest.mark.process

# Starts the server with the settings of each line, in a process that has what takes long to import.
STARTS = """
import json, os, signal, sys, traceback
import streamlit.web.cli, model.run.model
from model.system.commands import command
from viz.server.starting import run_server

for line in sys.stdin:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.environ |= json.loads(line)
        os.dup2(write, 1), os.dup2(write, 2), os.close(read), signal.alarm(120)
        sys.stdout, sys.stderr = (open(place, "w", 1, closefd=False) for place in (1, 2))
        status = 0
        try:
            with command("app"):
                run_server()
        except SystemExit as ended:
            status = int(bool(ended.code))
            print(ended.code if isinstance(ended.code, str) else "", flush=True)
        except BaseException:
            status = 1
            traceback.print_exc()
        os._exit(status)
    os.close(write)
    with os.fdopen(read) as written:
        text = written.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, text]), flush=True)
"""


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of this computer at which somebody else listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


@pytest.fixture(scope="module")
def said() -> Iterator[Callable[..., str]]:
    """Call it with settings: what a start with these, which must fail, writes."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTS],
        cwd=REPOSITORY,
        env=os.environ | {"STREAMLIT_SERVER_HEADLESS": "true"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None

        def said(**settings: str) -> str:
            print(json.dumps(settings), file=process.stdin, flush=True)
            status, written = json.loads(process.stdout.readline())
            assert status not in (0, None)
            return str(written).strip()

        yield said


def test_a_setting_that_makes_no_sense_ends_the_start_with_one_sentence(
    said: Callable[..., str], subtests: pytest.Subtests
) -> None:
    for variable, value, names in [
        ("STREAMLIT_SERVER_PORT", "abc", "--server.port"),
        ("STREAMLIT_SERVER_PORT", "99999", "port 99999"),
        ("STREAMLIT_SERVER_ADDRESS", "nonsense.invalid", "nonsense.invalid"),
        ("STREAMLIT_SERVER_ADDRESS", "203.0.113.9", "203.0.113.9"),
        ("STREAMLIT_SERVER_HEADLESS", "perhaps", "--server.headless"),
        ("STREAMLIT_SERVER_SSL_CERT_FILE", "/nowhere", "sslCertFile"),
        ("STREAMLIT_LOGGER_LEVEL", "loud", "LOUD"),
        ("STREAMLIT_THEME_BASE", "pink", "pink"),
        ("ATTENTION_CACHE", __file__, "ATTENTION_CACHE is "),  # one of the app's own stands for all
    ]:
        with subtests.test(names=names):
            told = said(**{variable: value})
            assert names in told
            assert "Traceback" not in told
            assert "\n" not in told


def test_a_port_that_is_taken_is_told_in_one_line(
    said: Callable[..., str], taken_port: int
) -> None:
    told = said(STREAMLIT_SERVER_ADDRESS="127.0.0.1", STREAMLIT_SERVER_PORT=str(taken_port))
    assert str(taken_port) in told
    assert "Traceback" not in told
    assert "\n" not in told


def test_an_output_without_room_does_not_keep_the_app_from_starting(tmp_path: Path) -> None:
    with serving(tmp_path / "log", program=("tests.faults.full_output",)) as server:
        assert server.process.poll() is None
