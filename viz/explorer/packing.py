"""A message of numbers and words as one block of bytes.

The block: the length of the words in four bytes, the words as JSON filled up to a multiple of four
bytes, then the arrays one after the other. Among the words stands, for each array, its first byte, its
length and its kind. Equal arrays of a message stand in it once. A number that is not finite is refused: a
browser would refuse the whole message.

A block may come after another one: what both have stands in the first alone, as a baseline that several
changed runs have. Bytes are then counted from the first one's arrays on.
"""

import json
import struct
from collections.abc import Mapping
from itertools import islice

import numpy as np

Json = dict[str, object]
FLOAT = 4  # bytes; every array begins at a multiple of it
_KINDS = {"<f4": "floats", "|u1": "bytes"}  # little-endian float32, and bytes


def packed(message: Mapping[str, object], after: Mapping[str, object] | None = None) -> bytes:
    """A message as a block of bytes that `unpacked` in js/message.js reads. Arrays may lie at any depth.
    after: the message whose block the reader has read. Raises KeyError for an array of another type."""
    starts: dict[bytes, int] = {}  # by their bytes, in order
    end = 0

    def described(array: object) -> Json:
        nonlocal end
        if not isinstance(array, np.ndarray):
            raise TypeError(f"A message holds no {type(array).__name__}.")
        content = array.tobytes()
        content += b"\0" * (-len(content) % FLOAT)
        if content not in starts:
            starts[content] = end
            end += len(content)
        return {"kind": _KINDS[array.dtype.str], "start": starts[content], "count": array.size}

    def written(said: object) -> bytes:
        words = json.dumps(said, default=described, allow_nan=False).encode()
        return words + b" " * (-len(words) % FLOAT)

    written(after)
    known = len(starts)
    words = written(message)
    return b"".join([struct.pack("<I", len(words)), words, *islice(starts, known, None)])


def words(block: bytes) -> dict[str, object]:
    """What a block of bytes says beside its arrays."""
    said: dict[str, object] = json.loads(block[4 : numbers_start(block)])
    return said


def numbers_start(block: bytes) -> int:
    """The first byte of the arrays of a block."""
    (length,) = struct.unpack_from("<I", block)
    return 4 + int(length)
