"""Trace files whose header, description or arrays were changed."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.trace import array_file
from model.trace.description import KEY

Change = Callable[[dict[str, Any]], object]


def parts(file: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a file, and the bytes of its arrays."""
    start = 8 + int.from_bytes(file[:8], "little")
    return json.loads(file[8:start]), file[start:]


def joined(header: dict[str, Any] | bytes, rest: bytes) -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + rest


def with_header(file: bytes, change: Change) -> bytes:
    """The file with another header, the arrays as they were."""
    header, rest = parts(file)
    change(header)
    return joined(header, rest)


def with_description(file: bytes, change: Change) -> bytes:
    """The file with another description."""

    def described(header: dict[str, Any]) -> None:
        said = json.loads(header["__metadata__"][KEY])
        change(said)
        header["__metadata__"][KEY] = json.dumps(said)

    return with_header(file, described)


def with_arrays(file: bytes, change: Change) -> bytes:
    """The file with other arrays, well written."""
    arrays = arrays_of(file)
    change(arrays)
    text = parts(file)[0]["__metadata__"][KEY]
    return written(arrays, text)


def arrays_of(file: bytes) -> dict[str, NDArray[Any]]:
    """Copies of all arrays of a file, by name."""
    header = array_file.read_header(stream := io.BytesIO(file), len(file), KEY)
    return {name: array_file.read_array(stream, header, name).copy() for name in header.arrays}


def written(arrays: Mapping[str, NDArray[Any]], text: str) -> bytes:
    stream = io.BytesIO()
    array_file.write(stream, {name: np.asarray(one) for name, one in arrays.items()}, KEY, text)
    return stream.getvalue()
