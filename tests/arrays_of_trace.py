"""Every array of a trace."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import Trace


def every_array(value: object) -> Iterator[NDArray[Any]]:
    """The arrays of a trace, its records, tuples and mappings, in order, and all logits."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        for name in sorted(value):
            yield from every_array(value[name])
    elif isinstance(value, tuple | list) or type(value).__name__ == "LazyStates":
        for one in value:  # type: ignore[attr-defined]
            yield from every_array(one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from every_array(getattr(value, name))
    if isinstance(value, Trace) and value.logits is not None:
        yield value.logits
