"""Reads ordinary files only, and none beyond a known size; writes files that are whole or not there."""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

LARGEST_JSON = 2**27  # bytes: the largest index and tokenizer of the hub are tens of megabytes
PIECE = 2**20  # bytes that are hashed at once
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


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to be written beside its place, and put there once it is whole: what is there always is. After
    an error nothing is left of it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


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


def json_object(path: Path) -> dict[str, Any]:
    """The object that a file holds. Raises NotReadError, or ValueError with what is wrong: "is missing"."""
    try:
        content = json.loads(read_text(path, LARGEST_JSON))
    except ABSENT as error:
        raise ValueError("is missing") from error
    except OSError as error:
        raise NotReadError(path.name, path.parent.name, error) from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
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


def file_hash(path: Path) -> str:
    """SHA-256 of an ordinary file in hexadecimal digits. What is added to the file meanwhile is not read."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := file.read(min(PIECE, left))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()
