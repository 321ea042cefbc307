"""Named arrays in files of other programs, .npz and .safetensors. Nothing in such a file is executed, no
pickle is opened, and no file is read beyond the bound of trace files (ATTENTION_TRACE_MB)."""

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from model.system.files import ABSENT, bytes_text, open_file
from model.system.settings import MEGABYTE, settings
from model.trace.array_file import strict_json

GivenArrays = Mapping[str, Any]  # of numpy or PyTorch, by name
ENDINGS = (".safetensors", ".npz")
_PICKLES = (".pt", ".pth", ".bin", ".pkl")
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
          "BOOL": "?", "U8": "u1"}  # fmt: skip
_MOST_HEADER = 4_000_000  # bytes
LONGEST_NAME = 300  # letters: patterns look for dots in it


def content(file: "str | Path | BinaryIO") -> tuple[str, bytes]:
    """The name and the bytes of a file, or of an open one. Raises ValueError for one that is absent, is no
    ordinary file, or is larger than the bound."""
    if isinstance(file, str | Path):
        path = Path(file)
        try:
            with open_file(path) as opened:
                return path.name, _bounded(opened, os.fstat(opened.fileno()).st_size)
        except ABSENT as error:
            raise ValueError(f"There is no file {path.name}.") from error
        except OSError as error:
            raise ValueError(f"{path.name} cannot be read ({error.strerror}).") from error
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return Path(str(getattr(file, "name", "file"))).name, _bounded(file, size)


def arrays_in(name: str, raw: bytes) -> GivenArrays:
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
    try:
        arrays = readers[ending](raw)
    except (ArithmeticError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError,
            RecursionError, NotImplementedError, zipfile.BadZipFile) as error:  # fmt: skip
        raise ValueError(f"{name} holds no readable arrays: {_clause(error)}.") from error
    if not arrays:
        raise ValueError(f"{name} holds no arrays.")
    if max(map(len, arrays)) > LONGEST_NAME:
        raise ValueError(f"{name} names an array with more than {LONGEST_NAME} letters.")
    return arrays


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes a file of the kind that its ending names. Raises ValueError for another ending."""
    match path.suffix:
        case ".npz":
            with path.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
        case ".safetensors":
            path.write_bytes(_as_safetensors(arrays))
        case _:
            raise ValueError(f"{path.name} ends with none of {', '.join(ENDINGS)}.")


def bound() -> int:
    """Bytes of the largest file that is read."""
    return settings().trace_megabytes * MEGABYTE


def _bounded(file: BinaryIO, size: int) -> bytes:
    if size > bound():
        raise ValueError(
            f"This file has {bytes_text(size)}; at most {bytes_text(bound())} are read here "
            "(ATTENTION_TRACE_MB)."
        )
    return file.read(size)


def _clause(error: BaseException) -> str:
    """The first line of an error of a library, as a clause."""
    return str(error).strip().partition("\n")[0][:200].rstrip(".") or type(error).__name__


def _unpacked(raw: bytes) -> None:
    """Raises ValueError for an archive that is larger than the bound once it is unpacked."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > bound():
        raise ValueError(
            f"unpacked it has {bytes_text(size)}, and at most {bytes_text(bound())} are read"
        )


def _npz(raw: bytes) -> GivenArrays:
    _unpacked(raw)
    with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _safetensors(raw: bytes) -> GivenArrays:
    length = int.from_bytes(raw[:8], "little")
    if not 2 <= length <= min(_MOST_HEADER, len(raw) - 8):
        raise ValueError("its header is longer than the file, or than a header may be")
    header = strict_json(raw[8 : 8 + length].decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError("its header is no list of arrays")
    header.pop("__metadata__", None)
    return dict(_stored(header, memoryview(raw)[8 + length :]))


def _stored(header: Mapping[str, Any], data: memoryview) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, entry in header.items():
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if kind not in _KINDS:
            raise ValueError(
                f"an array has numbers of the kind {str(kind)[:20]}, which is not read"
            )
        if not all(type(size) is int and size >= 0 for size in (*shape, begin, end)):
            raise ValueError("an array has no proper size")
        array = np.frombuffer(data[begin:end], _KINDS[kind]).reshape(shape)
        if kind == "BF16":  # the upper half of a number in single precision
            array = (array.astype(np.uint32) << 16).view(np.float32)
        yield name, array


def _as_safetensors(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    header, offset, parts = {}, 0, []
    names = {np.dtype(written): name for name, written in _KINDS.items() if name != "BF16"}
    for name, array in arrays.items():
        part = np.ascontiguousarray(array).tobytes()
        ends = [offset, offset := offset + len(part)]
        header[name] = {"dtype": names[array.dtype], "shape": [*array.shape], "data_offsets": ends}
        parts.append(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
