"""Files that must be exactly the ones we mean."""

import hashlib
from pathlib import Path

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


def file_hash(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
