"""Processes of their own: killed where they take too long, and ended with the one that started them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model.system.processes import _end, ended_after, start_python

STILL = "import signal; print('begun', flush=True); signal.pause()"
PARENT = """
import os, signal, sys
from model.system.processes import start_python
from threading import Thread
begun = []
thread = Thread(target=lambda: begun.append(start_python([sys.argv[1]])))
thread.start()
thread.join()  # the process outlives the thread that asked for it
begun[0].stdout.readline()
assert begun[0].poll() is None
begun[0].send_signal(signal.SIGSTOP)
print(begun[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def still(tmp_path: Path) -> Path:
    """A program that never ends."""
    file = tmp_path / "still.py"
    file.write_text(STILL)
    return file


def test_one_that_stands_still_is_killed_and_its_pipes_close(still: Path) -> None:
    with start_python([str(still)]) as process:
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGSTOP)
        with ended_after(process, 0):
            assert process.stdout.readline() == b""
        assert process.wait() == -signal.SIGKILL


def test_one_that_died_over_its_question_is_put_away_in_silence(tmp_path: Path) -> None:
    (file := tmp_path / "silent.py").touch()
    process = start_python([str(file)])
    process.wait()
    process.stdin.write(b"a question that nobody reads")
    _end(process)
    assert process.stdin.closed
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux ends it")
def test_it_ends_with_the_server_also_where_that_is_killed_and_it_stands_still(still: Path) -> None:
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, str(still)], stdout=subprocess.PIPE, check=False
    )
    assert parent.returncode == -signal.SIGKILL
    status = Path(f"/proc/{int(parent.stdout)}/stat")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _lives(status):
        time.sleep(0.01)
    assert not _lives(status)


def _lives(status: Path) -> bool:
    """Whether a process runs: it may wait for somebody to hear of its end."""
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
