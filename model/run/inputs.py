"""What a model reads: one text, or one row of token ids, as people have them."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from model.run.protocols import check_id

TokenIds = Sequence[int]  # of tokens; an array or a tensor of one axis as well, or of one row


def ids_given(text: object, vocabulary: int, name: str) -> list[int] | None:
    """The ids that are given instead of a text; None: it is a text.

    Args:
        text: a str, or whole numbers in a list, an array or a tensor, (token,) or (1, token).
        vocabulary: how many tokens there are.
        name: of the model.

    Raises ValueError for anything else, for no ids, and for an id that no token has.
    """
    if isinstance(text, str):
        return None
    ids = row_of_ids(text)
    for id_ in ids:
        check_id(id_, vocabulary, name)
    return ids


def row_of_ids(given: object) -> list[int]:
    """The ids of one text, (token,) or (1, token). Raises ValueError for anything else, and for no ids."""
    row = _numbers(given)
    if row.ndim == 2 and len(row) == 1:
        row = row[0]
    if row.ndim == 1 and not len(row):
        raise ValueError("There is no text yet: it has no ids.")
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise ValueError(
            "One text is read at a time, as a str or as a row of token ids, not "
            f'{type(given).__name__}; of what a tokenizer gives, pass ["input_ids"].'
        )
    return [int(id_) for id_ in row]


def is_several(text: object) -> bool:
    """Whether these are several texts: a list or tuple whose members are texts or lists of ids."""
    return isinstance(text, list | tuple) and any(
        isinstance(one, str | list | tuple) or getattr(one, "ndim", 0) > 0 for one in text
    )


def _numbers(text: Any) -> np.ndarray[Any, Any]:
    """An array of what is given; of other things one without whole numbers."""
    if hasattr(text, "detach"):  # a tensor, wherever it is
        text = text.detach().cpu()
    if isinstance(text, bytes | bytearray | Mapping | Set):
        return np.zeros((0, 0, 0))
    try:
        return np.asarray(text if hasattr(text, "__array__") else list(text))
    except (TypeError, ValueError):
        return np.zeros((0, 0, 0))
