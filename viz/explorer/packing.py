"""A message of numbers and words as one block of bytes, and as text.

The block: the length of the words in four bytes, the words as JSON filled up to a multiple of four
bytes, then the arrays one after the other. In the words an array is where it lies: first byte and
kind. Nothing that is not a finite number is written as a number: a browser refuses the whole otherwise.
"""

import base64
import json
import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Json = Mapping[str, object]
_ALIGNED = 4
_KINDS = {"<f4": "floats", "|u1": "bytes"}  # of little-endian float32, and of bytes


def packed(message: Json) -> bytes:
    """A message as a block of bytes that `unpacked` in js/message.js reads. Arrays may lie at any depth."""
    blocks: list[bytes] = []
    described = _described(message, blocks)
    words = json.dumps(described, allow_nan=False, ensure_ascii=True).encode()
    words += b" " * (-len(words) % _ALIGNED)
    return b"".join([struct.pack("<I", len(words)), words, *blocks])


def words(block: bytes) -> dict[str, object]:
    """What a block of bytes says beside its arrays; an array is where it lies."""
    (length,) = struct.unpack_from("<I", block)
    described: dict[str, object] = json.loads(block[4 : 4 + length])
    return described


def spelled(message: Json) -> dict[str, object]:
    """A message as text that JSON can carry, its arrays in base64: for a file that stands alone."""
    return {name: _spelled(value) for name, value in message.items()}


def _described(value: object, blocks: list[bytes]) -> object:
    if isinstance(value, np.ndarray):
        start = sum(map(len, blocks))
        content = value.tobytes()
        blocks += [content, b"\0" * (-len(content) % _ALIGNED)]
        return {"kind": kind_of(value), "start": start, "count": value.size}
    if isinstance(value, Mapping):
        return {name: _described(part, blocks) for name, part in value.items()}
    return value


def _spelled(value: object) -> object:
    if isinstance(value, np.ndarray):
        return {"kind": kind_of(value), "base64": base64.b64encode(value.tobytes()).decode("ascii")}
    return spelled(value) if isinstance(value, Mapping) else value


def kind_of(array: NDArray[np.float32] | NDArray[np.uint8]) -> str:
    """What the browser reads an array as. Raises KeyError for an array of another type."""
    return _KINDS[array.dtype.str]
