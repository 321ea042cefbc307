"""Files that must be exactly the ones we mean."""

import hashlib
from pathlib import Path


def file_hash(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
