"""Named arrays and one text in a safetensors file, written piece by piece and read strictly.

Eight bytes hold the header's length, then comes the header in JSON, then the arrays, one after the other
without gaps (https://github.com/huggingface/safetensors). Nothing in such a file is executed. Every size is
compared with that of the file before anything is built from it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from model.system.files import bytes_text

KINDS: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(written)
    for name, written in {"F32": "<f4", "I64": "<i8", "BOOL": "?", "U8": "u1"}.items()
}
MOST_HEADER = 4_000_000  # bytes: some seconds to read and check
MOST_ARRAYS = 100_000
MOST_AXES = 4
DEEPEST = 12  # lists and objects inside one another
_NAME = re.compile(r"[A-Za-z0-9_./]{1,200}", re.ASCII)
# Nothing is tried twice, or a text without an end would take the square of its length.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_KIND_OF = {dtype: kind for kind, dtype in KINDS.items()}
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


def write(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], key: str, text: str) -> None:
    """Writes arrays, one at a time, and a text under a key of the metadata. Raises ValueError where they are
    more than can be read again."""
    # The widest numbers stand first, so that each array begins at a multiple of its width.
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    header: dict[str, object] = {"__metadata__": {key: text}}
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


def read_header(file: BinaryIO, size: int, key: str) -> Header:
    """What a file of so many bytes says of itself. Raises ValueError where that cannot be."""
    length = int.from_bytes(file.read(_PREFIX), "little")
    if not 2 <= length <= min(MOST_HEADER, size - _PREFIX):
        raise ValueError("its header is longer than the file, or than a header may be")
    header = strict_json(_decoded(file.read(length)))
    if not isinstance(header, dict) or len(header) > MOST_ARRAYS:
        raise ValueError("its header is no list of arrays")
    metadata = header.pop("__metadata__", None)
    text = metadata.get(key) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ValueError(f"its header has no “{key}”")
    arrays = {name: _stored(name, entry) for name, entry in header.items()}
    end = 0
    for name, stored in sorted(arrays.items(), key=lambda one: one[1].begin):
        if stored.begin != end:
            raise ValueError(f"the array {name} overlaps another, or leaves a gap")
        end = stored.end
    start = _PREFIX + length
    if start + end != size:
        raise ValueError("its arrays do not fill the file")
    return Header(text, arrays, start)


def read_array(file: BinaryIO, header: Header, name: str) -> NDArray[Any]:
    """One array of a file, read-only. Raises ValueError where the file has become shorter, and for truths
    that are neither 0 nor 1."""
    stored = header.arrays[name]
    raw = np.empty(stored.end - stored.begin, np.uint8)
    file.seek(header.start + stored.begin)
    if file.readinto(raw.data) != raw.nbytes:  # type: ignore[attr-defined]
        raise ValueError("it was changed while it was read")
    if stored.kind == "BOOL" and raw.max(initial=0) > 1:
        raise ValueError(f"the array {name} holds other values than true and false")
    array = raw.view(KINDS[stored.kind]).reshape(stored.shape)
    array.flags.writeable = False
    return array


def strict_json(text: str) -> Any:
    """What a JSON text holds. Raises ValueError for one that is nested deeply, names something twice, or
    has numbers that JSON does not know."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            raise ValueError("its header is nested too deeply")
    try:
        return json.loads(text, object_pairs_hook=_named_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError("its header is not JSON") from error


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("its header is not UTF-8") from error


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("its header names something twice")
    return named


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"its header holds {constant}")


def _stored(name: str, entry: Any) -> Stored:
    match entry:
        case {
            "dtype": str(kind),
            "shape": list(shape),
            "data_offsets": [int(begin), int(end)],
        } if len(entry) == 3 and kind in KINDS and len(shape) <= MOST_AXES:
            sizes_fit = all(type(axis) is int and axis > 0 for axis in shape)
            if sizes_fit and begin >= 0 and end - begin == prod(shape) * KINDS[kind].itemsize:
                if not _NAME.fullmatch(name):
                    raise ValueError("an array has a name that no trace gives")
                return Stored(kind, tuple(shape), begin, end)
    raise ValueError("an array has a size or a kind of numbers that no trace gives")
