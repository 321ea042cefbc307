"""Named arrays and one text in a safetensors file, written piece by piece and read strictly. It is the one
reader of such files: of this app's own, and of those of other programs.

Eight bytes hold the header's length, then comes the header in JSON, then the arrays, one after the other
without gaps (https://github.com/huggingface/safetensors). Nothing in such a file is executed. Every size is
compared with that of the file before anything is built from it. The library does not serve: a file that it
has mapped and somebody shortens ends the process, an upload is an open file, its writer renames over the
file that is locked, or holds everything twice, and writes what is not contiguous wrongly.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from model.system import deadline
from model.system.files import bytes_text
from model.system.foreign import strict_json

KINDS: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(written)
    for name, written in {
        "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
        "I8": "i1", "U8": "u1", "BOOL": "?",
    }.items()
}  # fmt: skip
MOST_HEADER = 4_000_000  # bytes: some seconds to read and check
MOST_ARRAYS = 100_000
MOST_AXES = 8
LONGEST_NAME = 300  # letters: patterns look for dots in it
_KIND_OF = {dtype: kind for kind, dtype in KINDS.items() if kind != "BF16"}
_PREFIX = 8  # bytes before the header


@dataclass(frozen=True)
class Stored:
    """Where an array lies in a file. Offsets count from the end of the header."""

    kind: str  # a key of KINDS
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """What a file says of itself."""

    text: str
    arrays: Mapping[str, Stored]
    start: int  # where the arrays begin


def write(
    file: BinaryIO, arrays: Mapping[str, NDArray[Any]], key: str = "", text: str = ""
) -> None:
    """Writes arrays, one at a time, and a text.

    Args:
        file: open for writing in bytes; it stays open.
        key: of the metadata, under which the text stands; "": no text is written.

    Raises ValueError where they are more than can be read again.
    """
    # The widest numbers stand first, so that each array begins at a multiple of its width.
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    header: dict[str, object] = {"__metadata__": {key: text}} if key else {}
    offset = 0
    for name in names:
        array = arrays[name]
        ends = [offset, offset := offset + array.nbytes]
        kind = _KIND_OF[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": ends}
    written = json.dumps(header, separators=(",", ":")).encode()
    written += b" " * (-len(written) % 8)
    if len(written) > MOST_HEADER:
        raise ValueError(
            f"The description of this run has {bytes_text(len(written))}; a trace file holds at most "
            f"{bytes_text(MOST_HEADER)}. Tokens and changes by hand take most of it."
        )
    file.write(len(written).to_bytes(_PREFIX, "little"))
    file.write(written)
    for name in names:
        array = arrays[name]
        file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)


def read_header(file: BinaryIO, size: int, key: str = "") -> Header:
    """What a file of so many bytes says of itself, and the text under a key of its metadata; "": of none.
    Raises ValueError where that cannot be."""
    file.seek(0)
    length = int.from_bytes(file.read(_PREFIX), "little")
    if not 2 <= length <= min(MOST_HEADER, size - _PREFIX):
        raise ValueError("its header is longer than the file, or than a header may be")
    header = strict_json(file.read(length).decode())
    if not isinstance(header, dict) or len(header) > MOST_ARRAYS:
        raise ValueError("its header is no list of arrays")
    metadata = header.pop("__metadata__", None)
    text = metadata.get(key) if isinstance(metadata, dict) else None
    if key and not isinstance(text, str):
        raise ValueError(f"its header has no “{key}”")
    arrays = {name: _stored(name, entry) for name, entry in header.items()}
    end = 0
    for name, stored in sorted(arrays.items(), key=lambda one: (one[1].begin, one[1].end)):
        if stored.begin != end:
            raise ValueError(f"the array {name} overlaps another, or leaves a gap")
        end = stored.end
    start = _PREFIX + length
    if start + end != size:
        raise ValueError("its arrays do not fill the file")
    return Header(str(text or ""), arrays, start)


def read_array(file: BinaryIO, header: Header, name: str) -> NDArray[Any]:
    """One array of a file, read-only; bfloat16 in single precision. Raises ValueError where the file has
    become shorter, and for truths that are neither 0 nor 1; PassTooLongError as `deadline.look`."""
    deadline.look()
    stored = header.arrays[name]
    raw = np.empty(stored.end - stored.begin, np.uint8)
    file.seek(header.start + stored.begin)
    if file.readinto(raw.data) != raw.nbytes:  # type: ignore[attr-defined]
        raise ValueError("it was changed while it was read")
    if stored.kind == "BOOL" and raw.max(initial=0) > 1:
        raise ValueError(f"the array {name} holds other values than true and false")
    array = raw.view(KINDS[stored.kind]).reshape(stored.shape)
    if stored.kind == "BF16":  # the upper half of a number in single precision
        array = (array.astype(np.uint32) << 16).view(np.float32)
    array.flags.writeable = False
    return array


def _stored(name: str, entry: Any) -> Stored:
    match entry:
        case {
            "dtype": str(kind),
            "shape": list(shape),
            "data_offsets": [int(begin), int(end)],
        } if len(entry) == 3 and kind in KINDS and len(shape) <= MOST_AXES:
            sizes_fit = all(type(axis) is int and axis >= 0 for axis in shape)
            if sizes_fit and begin >= 0 and end - begin == prod(shape) * KINDS[kind].itemsize:
                if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
                    raise ValueError("an array has a name that cannot be written")
                return Stored(kind, tuple(shape), begin, end)
    raise ValueError("an array has a size or a kind of numbers that is not read")
