"""The names of trace files: a path, or for one that was dropped on a page the hash of its content."""

import hashlib
import re
from io import BytesIO

ENDING = ".safetensors"
_PREFIX = "trace:"
_NAME = re.compile(_PREFIX + "[0-9a-f]{64}", re.ASCII)
FORGOTTEN = (
    "This trace file is no longer kept, or it was opened in another session: open the file again."
)


def uploaded_name(file: BytesIO) -> str:
    """The name of a file's content: `trace:` and its SHA-256."""
    file.seek(0)
    name = _PREFIX + hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return name


def is_uploaded(name: str) -> bool:
    """Whether a name is that of a file that was dropped on a page."""
    return _NAME.fullmatch(name) is not None


def is_recording(name: str) -> bool:
    """Whether a name is that of a trace file."""
    return is_uploaded(name) or name.endswith(ENDING)
