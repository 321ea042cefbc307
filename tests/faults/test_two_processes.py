"""Two who fetch the same model at once, and one who dies while fetching it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from model.download.wheel import fetch_wheel
from model.system.model_folders import LOCKS, alone, whole
from tests.faults.wheels import FILES, WHEEL, environment, publish

HOLDS = """
import sys, time
from pathlib import Path
from model.system.model_folders import alone, whole
folder = Path(sys.argv[1])
with alone(folder, "tiny", print), whole(folder, "tiny") as place:
    (place / "model.safetensors").write_bytes(b"half")
    print("half", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environment(tmp_path / "index", tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    publish(tmp_path / "index")
    return tmp_path / "index"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.process
def test_one_waits_while_another_fetches_and_takes_over_when_that_one_dies(
    index: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "tiny"
    command = [sys.executable, "-c", HOLDS, str(folder)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    told: list[str] = []
    try:
        assert other.stdout.readline() == "half\n"

        def hear(sentence: str, share: float | None) -> None:
            told.append(sentence)
            if "waiting" in sentence:
                other.kill()

        assert contents(fetch_wheel("tiny", WHEEL, hear)) == FILES
    finally:
        other.kill()
        other.communicate()
    assert {"tiny", "waiting"} <= {*told[0].split()}
    assert any(sentence.startswith("Downloading") for sentence in told)
    assert {path.name for path in folder.parent.iterdir()} == {LOCKS, "tiny"}


def test_of_two_at_once_one_fetches_and_both_have_it(index: Path) -> None:
    told: list[str] = []
    found: list[dict[str, bytes]] = []

    def fetch() -> None:
        folder = fetch_wheel("tiny", WHEEL, lambda sentence, share: told.append(sentence))
        found.append(contents(folder))

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [FILES] * 3
    assert sum("Checking" in sentence for sentence in told) == 3
    assert any("waiting" in sentence for sentence in told)


def test_who_waits_may_leave(tmp_path: Path) -> None:
    folder, left = tmp_path / "tiny", threading.Event()

    def leave(sentence: str, share: float | None) -> None:
        left.set()
        raise KeyboardInterrupt

    with alone(folder, "tiny", lambda *news: None):
        with pytest.raises(KeyboardInterrupt), alone(folder, "tiny", leave):
            pytest.fail("two were let in")
        assert left.is_set()
    with alone(folder, "tiny", leave), whole(folder, "tiny") as place:
        (place / "file").write_bytes(b"")
    assert contents(folder) == {"file": b""}
