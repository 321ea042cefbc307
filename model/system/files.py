"""Files that must be exactly the ones we mean: ordinary ones, read to a known size."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

LARGEST_JSON = 2**27  # bytes: the largest index and tokenizer of the hub are tens of megabytes
PIECE = 2**20  # bytes that are hashed at once
_WITHOUT_WAITING = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class OddFileError(ValueError):
    """A file is no ordinary one, or holds more bytes than it may."""


def open_file(path: Path) -> BinaryIO:
    """An ordinary file, opened to be read. Raises OddFileError for what would wait for a writer or never
    end: a pipe, a device."""
    descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(f"{path.name} is a folder")
        raise OddFileError(f"its {path.name} is no ordinary file")
    return os.fdopen(descriptor, "rb")


def read_text(path: Path, most: int) -> str:
    """The text of an ordinary file. Raises OddFileError where it is more than so many bytes."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OddFileError(f"its {path.name} is larger than {most:,} bytes")
        content = file.read(size)
    return content.decode("utf-8")


# What says that there is no such file; of other errors of the system, none says anything of its content.
ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class NotReadError(ValueError):
    """A file could not be read now. What is in it stays unknown, so it is neither damaged nor removed."""

    def __init__(self, file: str, title: str, error: OSError) -> None:
        why = error.strerror or str(error)
        super().__init__(
            f"The file {file} of {title} could not be read now ({why}). Nothing was removed. Try again "
            "in a moment."
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


def file_hash(path: Path) -> str:
    """SHA-256 of an ordinary file, as hexadecimal digits; of one that grows meanwhile, of its beginning."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := file.read(min(PIECE, left))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()
