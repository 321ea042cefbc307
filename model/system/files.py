"""The one door for files: reads ordinary ones only, and none beyond a known size; writes files that are whole
or not there."""

import hashlib
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from model.system.border import meant

LARGEST_JSON = 2**27  # bytes: the largest index and tokenizer of the hub are tens of megabytes
PIECE = 2**20  # bytes that are hashed at once
_PART = re.compile(r"\..+\.[0-9a-f]{8}\.part", re.ASCII)  # a file that is being written
_WITHOUT_WAITING = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class OddFileError(ValueError):
    """A file is not an ordinary one, or is larger than it may be."""


def open_file(path: Path) -> BinaryIO:
    """Opens an ordinary file to be read. Raises OddFileError for a pipe or a device, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(f"{path.name} is a folder")
        raise OddFileError(f"its {path.name} is not an ordinary file")
    return os.fdopen(descriptor, "rb")


def there(path: str | Path) -> Path:
    """The path of a file that somebody asks for on this computer. Raises ValueError where there is none, with
    the nearest name in its folder."""
    path = Path(path)
    if not path.exists():
        beside = os.listdir(path.parent) if path.parent.is_dir() else []
        raise ValueError(f"There is no file {path.name}{meant(path.name, beside)}.")
    return path


@contextmanager
def opened(path: Path, most: int, bounded_by: str = "") -> Iterator[tuple[BinaryIO, int]]:
    """An ordinary file of somebody else's, and its size. Raises ValueError, with a sentence, for one that is
    absent, cannot be read, or has more than `most` bytes. bounded_by: the setting that says how many."""
    try:
        with open_file(path) as file:
            yield file, bounded(os.fstat(file.fileno()).st_size, most, bounded_by)
    except ABSENT as error:
        raise ValueError(f"There is no file {path.name}.") from error
    except OddFileError as error:
        raise OddFileError(f"{path.name} is not an ordinary file.") from error
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read ({error.strerror}).") from error


def bounded(size: int, most: int, bounded_by: str = "") -> int:
    """The size of a file. Raises ValueError where it is beyond the bound."""
    if size > most:
        setting = f" ({bounded_by})" if bounded_by else ""
        raise ValueError(
            f"This file has {bytes_text(size)}; at most {bytes_text(most)} are read here{setting}."
        )
    return size


def content_of(path: Path, most: int) -> bytes:
    """What a file holds. Raises ValueError as `opened`."""
    with opened(path, most) as (file, size):
        return file.read(size)


def text_of(path: Path, most: int) -> str:
    """The text of a file. Raises ValueError as `opened`, and for one that is not UTF-8."""
    try:
        return content_of(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not a text in UTF-8.") from error


def made_folder(path: str | Path) -> Path:
    """A folder, made where it is missing, with those around it. Raises ValueError for the name of a file."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ValueError(f"{path} is a file; name a folder.") from error
    return path


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to be written beside its place, and put there once it is whole: what is there always is. After
    an error nothing is left of it; what a killed process left in the folder is removed by the next one. A
    device is written as it is. The file of an OSError is the one that was asked for."""
    asked, path = path, path.resolve()
    if path.is_dir():
        raise ValueError(f"{asked} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    _clear(path.parent)
    try:
        beside, file = _begun(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        error.filename, error.filename2 = str(asked), None
        raise


def _begun(path: Path) -> tuple[Path, BinaryIO]:
    """A hidden file beside a path, locked as long as it is open."""
    while True:
        beside = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
        file = beside.open("xb")
        with suppress(OSError):  # a file system without locks
            _lock(file, waits=True)
        if os.fstat(file.fileno()).st_nlink:
            return beside, file
        file.close()  # another process took it for a dead one's before it was locked


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is whole or not there."""
    with whole_file(path) as file:
        file.write(content)


@lru_cache(maxsize=64)
def _clear(folder: Path) -> None:
    """Removes files in a folder whose writers are dead. Once for each process: whoever writes many files into
    a folder does not list it for each."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "rb") as file:
                    _lock(file, waits=False)  # refused while its writer lives
                    os.unlink(entry.path)


def _lock(file: BinaryIO, *, waits: bool) -> None:
    """Locks a file until it is closed, or its process ends. Raises OSError where another process has locked
    it and this one does not wait. Windows refuses to remove an open file, which is enough."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))


def read_text(path: Path, most: int) -> str:
    """The text of an ordinary file. Raises OddFileError where it has more than `most` bytes."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OddFileError(f"its {path.name} is larger than {most:,} bytes")
        content = file.read(size)
    return content.decode("utf-8-sig")


# These errors say that there is no such file. No other error of the system says anything about the content.
ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class NotReadError(ValueError):
    """A file could not be read now. Its content is unknown, so it is not called damaged and not removed."""

    def __init__(self, file: str, title: str, error: OSError) -> None:
        why = error.strerror or str(error)
        super().__init__(
            f"The file {file} of {title} cannot be read at the moment ({why}). Nothing was "
            "removed. Try again soon."
        )


def json_object(path: Path, title: str = "") -> dict[str, Any]:
    """The object that a file holds. title: what it belongs to; "": its folder. Raises NotReadError, or
    ValueError with what is wrong: "is missing"."""
    try:
        content = json.loads(read_text(path, LARGEST_JSON))
    except ABSENT as error:
        raise ValueError("is missing") from error
    except OSError as error:
        raise NotReadError(path.name, title or path.parent.name, error) from error
    except OddFileError:
        raise
    except ValueError as error:  # not UTF-8, not JSON, or a number of more than 4,300 digits
        raise ValueError("is damaged") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("is damaged")
    return content


def bytes_text(size: int) -> str:
    """A size in kB, MB or GB, of 1,000 each."""
    unit, name = next((u for u in ((1e9, "GB"), (1e6, "MB")) if size >= u[0]), (1e3, "kB"))
    return f"{size / unit:,.1f} {name}"


def printable(text: str) -> str:
    """A text whose control characters are written out: a terminal would obey those of a file."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )


def file_hash(path: Path) -> str:
    """SHA-256 of an ordinary file in hexadecimal digits. What is added to the file meanwhile is not read."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := file.read(min(PIECE, left))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()
