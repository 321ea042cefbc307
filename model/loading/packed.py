"""Shipped weights as the wheel holds them: in less room, and bit for bit the same.

The bytes of a file are 16-bit numbers. A checkpoint is stored as its difference from the trained model beside
it. All low bytes stand before all high ones, because only the high ones repeat; then zlib packs both.
"""

import zlib
from pathlib import Path

import numpy as np

ENDING = ".packed"


def is_packed(file: Path) -> bool:
    """Whether a file of weights lies here in this form only."""
    return not file.is_file() and packed(file).is_file()


def packed(file: Path) -> Path:
    """Where a file of weights lies in this form."""
    return file.with_name(file.name + ENDING)


def unpacked(file: Path, model: Path) -> bytes:
    """What a file of weights holds. model: that of the trained model.

    Raises OSError for a file that cannot be read, ValueError for one that is damaged.
    """
    try:
        halves = zlib.decompress(packed(file).read_bytes())
    except zlib.error as error:
        raise ValueError("its packed bytes are damaged") from error
    numbers = np.frombuffer(halves, np.uint8).reshape(2, -1).T.copy().view("<u2")[:, 0]
    if file != model:
        numbers = numbers + np.frombuffer(unpacked(model, model), "<u2")
    return numbers.tobytes()
