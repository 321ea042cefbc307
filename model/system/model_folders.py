"""Folders of downloaded models: written by one process at a time, complete or absent, checked before use.

Whatever is wrong with the disk, the visitor reads a sentence.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError

from model.system.files import ABSENT, PIECE, NotReadError, file_hash, json_object

Progress = Callable[[str, float | None], object]  # a sentence, and the share done (0-1) if known

LOCKS = ".locks"  # lies in the cache folder
SECONDS_BETWEEN_NEWS = 0.2
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ALL_OPEN = {errno.EMFILE, errno.ENFILE}  # no more files can be opened, by this process or by any
_NO_ROOM_TEXTS = ("No space left on device", "Disk quota exceeded", "File too large")


class NotStoredError(ValueError):
    """The disk did not take a model: it is full, or its folder cannot be written."""

    def __init__(self, title: str, error: Exception | str) -> None:
        if is_full(error):
            why = "the disk is full. Free some space, then choose it again"
        elif getattr(error, "errno", None) in _ALL_OPEN:
            why = "too many files are open. Choose it again in a moment"
        else:
            why = (
                "the folder for downloaded models cannot be written to. The setting "
                "ATTENTION_CACHE chooses another one when the app starts"
            )
        super().__init__(
            f"{title} could not be stored: {why}. The models on this computer still work."
        )


def is_full(error: Exception | str) -> bool:
    """Whether an error, or the output of a program, says that the disk is full."""
    return getattr(error, "errno", None) in _NO_ROOM or any(
        text in str(error) for text in _NO_ROOM_TEXTS
    )


def check_room(folder: Path, title: str, said: str) -> None:
    """Called after a program has failed. said: what it said. Raises NotStoredError where the disk is full,
    which may have kept it from saying so."""
    if is_full(said):
        raise NotStoredError(title, said)
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(PIECE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise NotStoredError(title, error) from error


@contextmanager
def alone(folder: Path, title: str, progress: Progress) -> Iterator[None]:
    """Lets only this thread of this process write a model's folder.

    While another one writes, `progress` is told, and may end the wait by raising. A process that dies
    releases the folder. Raises NotStoredError where the folder cannot be written.
    """
    lock = FileLock(folder.parent / LOCKS / f"{folder.name}.lock")
    try:
        (folder.parent / LOCKS).mkdir(parents=True, exist_ok=True)
        while not lock.is_locked:
            try:
                lock.acquire(timeout=SECONDS_BETWEEN_NEWS)
            except Timeout:
                progress(f"{title} is already being downloaded; waiting for it", None)
    except OSError as error:
        raise NotStoredError(title, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def whole(folder: Path, title: str) -> Iterator[Path]:
    """A place to write a model in. It becomes `folder` when the body ends, and is removed if the body fails.

    Call it inside `alone`. What a dead process left behind is removed. Raises NotStoredError where the disk
    refuses it.
    """
    place = folder.parent / f".arriving-{folder.name.lstrip('.')}"
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        yield place
        shutil.rmtree(folder, ignore_errors=True)
        place.rename(folder)
    except (OSError, SafetensorError) as error:
        raise NotStoredError(title, error) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_files(folder: Path, hashes: Mapping[str, str], title: str) -> None:
    """Raises ValueError, and removes the folder, unless each file has its SHA-256. Call it outside `alone`:
    another process may just be writing the folder anew, so it is removed only where it is damaged still when
    nobody writes it.

    Raises NotReadError, and removes nothing, where a file cannot be read.
    """
    for file, expected in hashes.items():
        if not _is_whole(folder / file, expected, title):
            with alone(folder, title, lambda sentence, share: None):
                if not _is_whole(folder / file, expected, title):
                    raise damaged(folder, file, title)


def _is_whole(path: Path, expected: str, title: str) -> bool:
    try:
        return file_hash(path) == expected
    except ABSENT:
        return False
    except OSError as error:
        raise NotReadError(path.name, title, error) from error


def manifest(path: Path, title: str) -> dict[str, Any]:
    """A folder's own list of its files. Raises ValueError, and removes the folder, where that is damaged, as
    `check_files` does. Raises NotReadError, and removes nothing, where it cannot be read."""
    if (content := _object_of(path, title)) is None:
        with alone(path.parent, title, lambda sentence, share: None):
            if (content := _object_of(path, title)) is None:
                raise damaged(path.parent, path.name, title)
    return content


def _object_of(path: Path, title: str) -> dict[str, Any] | None:
    try:
        return json_object(path, title)
    except NotReadError:
        raise
    except ValueError:
        return None


def damaged(folder: Path, file: str, title: str) -> ValueError:
    """Removes a folder with a damaged file, so that it is fetched again. Returns the refusal to raise."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        return ValueError(
            f"The file {file} of {title} was damaged and cannot be removed. Delete the model from "
            "the folder for downloaded models, then choose it again."
        )
    return ValueError(
        f"The file {file} of {title} was damaged and has been removed. "
        "Choose the model again to download it once more."
    )
