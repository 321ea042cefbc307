"""Which heads of a layer go into one message: all, or where they are too large, a block of them."""

import numpy as np
from numpy.typing import NDArray

from model.system.files import bytes_text
from model.trace.records import Attention
from model.trace.unproven import NotShownError
from viz.explorer.layer import band_of, by_distance

Array = NDArray[np.float32]
LARGEST = 18_000_000  # bytes of one head; Streamlit's limit on a message is 20 MB


def sent_heads(attention: Attention, head: int, room: int, *, runs: int, complete: bool) -> range:
    """The block of heads that contains this head, as large as this room in bytes allows. Raises NotShownError
    where one head alone does not fit into a message."""
    count = attention.heads
    if runs * bytes_of(attention, complete=complete) <= room:
        return range(count)
    each = runs * _bytes_alone(attention, complete=complete)
    if each > LARGEST:
        raise NotShownError(
            f"One head of this layer has {bytes_text(each)} of numbers; a browser gets at most "
            f"{bytes_text(LARGEST)} at once. Shorten the text."
        )
    block = min(max(room // max(each, 1), 1), count)
    first = min(max(head, 0), count - 1) // block * block
    return range(first, min(first + block, count))


def bytes_of(attention: Attention, *, complete: bool) -> int:
    """Bytes of a layer's arrays: queries and keys and, if complete, values and outputs. Keys and values that
    heads share count once."""
    arrays = _arrays(attention, complete=complete)
    return sum(array.nbytes for array in arrays) + attention.heads * _bytes_of_cells(attention)


def _bytes_alone(attention: Attention, *, complete: bool) -> int:
    """Bytes of one head, with all that it shares."""
    arrays = _arrays(attention, complete=complete)
    return sum(array.nbytes // len(array) for array in arrays) + _bytes_of_cells(attention)


def _arrays(attention: Attention, *, complete: bool) -> list[Array]:
    query, key, value = attention.vectors
    return [query, key, *([value, attention.output] if complete else [])]


def _bytes_of_cells(attention: Attention) -> int:
    """Bytes of what has a number for each query and key of a head."""
    cells = attention.vectors[0].shape[1] * attention.vectors[1].shape[1]
    bias = attention.bias is not None and not by_distance(attention)
    return 4 * cells * (attention.drops + bias)


def mask_bytes(attention: Attention) -> int:
    """Bytes of a layer's mask, a bit for each cell, unless a rule says it."""
    if attention.look_ahead or attention.own_mask is None or band_of(attention):
        return 0
    return attention.own_mask.size // 8
