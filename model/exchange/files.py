"""Named arrays in files of other programs, .npz and .safetensors. Nothing in such a file is executed, no
pickle is opened, and nothing is read whose numbers would take more memory than ATTENTION_TRACE_MB says."""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.lib.format as npy
from numpy.typing import NDArray

from model.system import deadline
from model.system.files import bounded, bytes_text, opened, whole_file
from model.system.foreign import refusing
from model.system.settings import SETTING_OF_TRACES, settings
from model.trace import array_file
from model.trace.array_file import LONGEST_NAME, MOST_ARRAYS, MOST_AXES

GivenArrays = Mapping[str, Any]  # of numpy or PyTorch, by name
ENDINGS = (".safetensors", ".npz")
_PICKLES = (".pt", ".pth", ".bin", ".pkl")
_SINGLE = 4  # bytes that each number becomes
# The end of a zip archive (PKWARE, APPNOTE 4.3.16): the record, whose directory's size stands at byte 12.
_END, _END_BYTES, _LARGE_END, _LARGE_BYTES = b"PK\x05\x06", 22, b"PK\x06\x07", 20
# The beginning of an array's file (numpy.lib.format): versions 1 and 2 differ in the header's length.
_DESCRIBED = re.compile(
    rb"\x93NUMPY(?:\x01\x00(?P<short>[\x00-\xff]{2})|\x02\x00(?P<long>[\x00-\xff]{4}))"
    rb"\{'descr': '(?P<kind>[<>|=](?:[fiu][248]|[iub]1))', 'fortran_order': (?P<columns>True|False), "
    rb"'shape': \((?P<shape>(?:[0-9]{1,19}, ?){0,9}(?:[0-9]{1,19})?)\), ?\} *\n"
)
_LONGEST_HEADER = 2_000  # bytes
_MOST_DIRECTORY = (
    2_000_000  # bytes of an archive's directory: zipfile makes tens of megabytes of it
)


@contextmanager
def content(file: "str | Path | BinaryIO") -> Iterator[tuple[str, BinaryIO, int]]:
    """The name of a file, or of an open one, what to read it from, and its size. Raises ValueError for one
    that is absent, is no ordinary file, or is larger than the bound."""
    if isinstance(file, str | Path):
        with opened(Path(file), bound(), SETTING_OF_TRACES) as (stream, size):
            yield Path(file).name, stream, size
        return
    if not hasattr(file, "seek"):
        raise ValueError(
            f"{type(file).__name__} holds no attention: give a file, or tensors by name."
        )
    size = bounded(file.seek(0, io.SEEK_END), bound(), SETTING_OF_TRACES)
    yield Path(str(getattr(file, "name", "file"))).name, file, size


def arrays_in(name: str, file: BinaryIO, size: int) -> GivenArrays:
    """The arrays of a file, by the ending of its name. Raises ValueError, with a sentence, for a file of
    another kind, or whose content is not what its name says."""
    readers = {".npz": _npz, ".safetensors": _safetensors}
    ending = Path(name).suffix
    if ending in _PICKLES:
        raise ValueError(
            f"{name} is a pickle, which can hold code and is not opened. Load it where you trust it and give "
            "its tensors: read(torch.load(file, weights_only=True))."
        )
    if ending not in readers:
        raise ValueError(f"{name} ends with none of {', '.join(ENDINGS)}: it cannot be read.")
    with refusing(f"{name} holds no readable arrays:"):
        arrays = readers[ending](file, size)
    if not arrays:
        raise ValueError(f"{name} holds no arrays.")
    return arrays


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes a file of the kind that its ending names, whole or not at all. Raises ValueError for another
    ending."""
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path.name} ends with none of {', '.join(ENDINGS)}.")
    with whole_file(path) as file:
        if path.suffix == ".npz":
            np.savez(file, allow_pickle=False, **arrays)
        else:
            array_file.write(file, arrays)


def bound() -> int:
    """Bytes of the largest file that is read, and of what it becomes."""
    return settings().trace_bytes


def check_becomes(numbers: int) -> None:
    """Raises ValueError for more numbers than there may be in memory, in single precision each."""
    if _SINGLE * numbers > bound():
        raise ValueError(
            f"its numbers take {bytes_text(_SINGLE * numbers)} of memory, and at most "
            f"{bytes_text(bound())} are read ({SETTING_OF_TRACES})"
        )


def _safetensors(file: BinaryIO, size: int) -> GivenArrays:
    header = array_file.read_header(file, size)
    check_becomes(sum(prod(one.shape) for one in header.arrays.values()))
    return {name: array_file.read_array(file, header, name) for name in header.arrays}


def _npz(file: BinaryIO, size: int) -> GivenArrays:
    """The arrays of an archive: nothing is made before all of them are known to fit their own sizes and the
    bound."""
    # Raises ValueError for a directory that is large, or has the form of large ones: all of it is
    # read at once. An archive of numpy ends with its record, without a remark.
    file.seek(max(0, size - _END_BYTES - _LARGE_BYTES))
    tail = file.read(_END_BYTES + _LARGE_BYTES)
    end = tail[-_END_BYTES:]
    if not end.startswith(_END) or end[-2:] != b"\0\0":
        raise ValueError("it does not end as an archive of numpy does")
    if tail.startswith(_LARGE_END) or int.from_bytes(end[12:16], "little") > _MOST_DIRECTORY:
        raise ValueError("it lists more arrays than are read")
    with zipfile.ZipFile(file) as archive:
        listed = archive.infolist()
        names = [one.filename.removesuffix(".npy") for one in listed]
        if len({*names}) < len(names) or len(names) > MOST_ARRAYS:
            raise ValueError("it names an array twice, or too many")
        for name in names:
            if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
                raise ValueError(
                    f"it names an array with more than {LONGEST_NAME} letters, or others"
                )
        if sum(one.file_size for one in listed) > 2 * bound():
            raise ValueError(f"unpacked it has more than {bytes_text(2 * bound())}")
        check_becomes(sum(prod(_shape(archive, one)) for one in listed))
        return {name: _array(archive, one) for name, one in zip(names, listed, strict=True)}


def _shape(archive: zipfile.ZipFile, listed: zipfile.ZipInfo) -> tuple[int, ...]:
    """Of an array, as its own header says; numpy's reader evaluates a header, and lets some errors through.
    Raises ValueError where that is not one of plain numbers which fill its place."""
    deadline.look()
    if listed.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("it is packed in another way than numpy's")
    with archive.open(listed) as file:
        found = _DESCRIBED.match(file.read(_LONGEST_HEADER))
    if found is None:
        raise ValueError("an array has no header of plain numbers, as numpy writes it")
    shape = tuple(map(int, found["shape"].replace(b",", b" ").split()))
    start = len(found[0])
    length = int.from_bytes(found["short"] or found["long"], "little")
    if len(shape) > MOST_AXES or start != length + (12 if found["long"] else 10):
        raise ValueError("an array has more axes than are read, or a header of another length")
    if start + prod(shape) * np.dtype(found["kind"].decode()).itemsize != listed.file_size:
        raise ValueError("an array has another size than its header says")
    return shape


def _array(archive: zipfile.ZipFile, listed: zipfile.ZipInfo) -> NDArray[Any]:
    """The numbers of one array; truths that are neither 0 nor 1 are refused."""
    deadline.look()
    with archive.open(listed) as file:
        numbers = npy.read_array(file, allow_pickle=False, max_header_size=_LONGEST_HEADER)
    if numbers.dtype.kind == "b" and numbers.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array holds other values than true and false")
    array: NDArray[Any] = numbers.astype(numbers.dtype.newbyteorder("="), copy=False)
    return array
