"""A class by one command: the address it takes, what it refuses, whom it admits, and who leads."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from model.system.addresses import is_loopback
from tests.server import REPOSITORY, SECONDS_TO_START
from viz.command.classroom import announcement, network_address, own_address, require_free
from viz.command.command import main
from viz.state.class_views import JOIN, LEAD


def reachable() -> str:
    """This computer's address in a network; skips where it has none."""
    try:
        return network_address()
    except ValueError as refusal:
        pytest.skip(str(refusal))


def test_the_address_of_a_class_is_one_of_this_computer_and_not_its_own_alone() -> None:
    address = reachable()
    assert not is_loopback(address)
    with socket.socket() as probe:
        probe.bind((address, 0))  # refused for an address of another computer
        port = probe.getsockname()[1]
        probe.listen()
        with pytest.raises(ValueError, match=f"{address}, port {port}"):
            require_free(address, port)


@pytest.mark.parametrize("written", ["127.0.0.1", "0.0.0.0", "localhost", "::1", "10.0.0", "a b"])
def test_an_address_that_no_class_reaches_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="address"):
        own_address(written)


def test_a_computer_without_a_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", nowhere)
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    with pytest.raises(ValueError, match="no address in a network"):
        network_address()


def test_a_refusal_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    for line, said in (
        (["--address", "127.0.0.1"], "127.0.0.1"),
        (["--port", "0"], "from 1 to 65535"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["class", *line])
        assert ended.value.code == 2
        told = capsys.readouterr().err
        assert said in told
        assert "Traceback" not in told


def test_what_the_room_may_do_follows_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "192.168.1.20")
    monkeypatch.delenv("ATTENTION_FOLDERS", raising=False)
    link, lead = "http://192.168.1.20:8501/?class=code", "http://192.168.1.20:8501/?lead=key"
    closed = announcement(link, lead, coloured=False)
    monkeypatch.setenv("ATTENTION_FOLDERS", "on")
    opened = announcement(link, lead, coloured=False)
    for told in (closed, opened):
        assert link in told.splitlines()[1]
        assert lead in told
    assert "folders" not in closed
    assert "folders" in opened


@contextmanager
def class_at(address: str, port: int, log: Path) -> Iterator[None]:
    """A class of its own process, once it can be drawn."""
    line = [sys.executable, "-m", "viz.command", "class", "--no-browser"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*line, "--address", address, "--port", str(port)],
            cwd=REPOSITORY,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + SECONDS_TO_START
        while status(address, port, "/readyz", f"{address}:{port}") != 200:
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < until
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(30)


def links_of(log: Path) -> tuple[str, str]:
    """What a class prints: the link with which pupils join it, and that of whoever leads it."""
    told = [word for word in log.read_text("utf-8").split() if word.startswith("http://")]
    joined, led = (next(word for word in told if f"{name}=" in word) for name in (JOIN, LEAD))
    return joined, led


def status(address: str, port: int, path: str, host: str) -> int:
    """What a request is answered; 0 where nobody listens."""
    with suppress(OSError), closing(HTTPConnection(address, port, timeout=10)) as connection:
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse().status
    return 0


@pytest.mark.process
def test_a_class_is_reached_at_its_address_by_its_name_and_in_no_other_way(tmp_path: Path) -> None:
    address, log = reachable(), tmp_path / "log"
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = int(probe.getsockname()[1])
    with class_at(address, port, log):
        for host, answer in (
            (f"{address}:{port}", 200),
            (f"localhost:{port}", 400),
            ("class.example.org", 400),
        ):
            assert status(address, port, "/", host) == answer
        assert status("127.0.0.1", port, "/", f"{address}:{port}") == 0
        joined, led = links_of(log)
        assert urlsplit(joined).netloc == urlsplit(led).netloc == f"{address}:{port}"
        code, _, key = parse_qs(urlsplit(led).query)[LEAD][0].partition(".")
        assert parse_qs(urlsplit(joined).query)[JOIN] == [code]
        assert key not in joined
        with pytest.raises(SystemExit):
            main(["class", "--address", address, "--port", str(port)])
