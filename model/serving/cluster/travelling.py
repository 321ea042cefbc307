"""What travels between pages and the cluster: plain data, numpy arrays, and references in place of the model,
its traces and their records. Nothing else is read, whoever sends it.

Ray's own messages are read by pickle, so whoever reaches a cluster runs any code on it; the token keeps
strangers out. What a visitor types is only ever a string within a request.
"""

import io
import pickle
from collections.abc import Callable
from enum import Enum
from typing import Any

from model.run.tokenizers import GPT2Subset, GPT2WithEnds, Words

_PLAIN = {
    "builtins": {"ValueError", "complex", "frozenset", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "pathlib": {"PosixPath", "WindowsPath"},
}
_OURS = ("model.",)

Refer = Callable[[Any], object]  # what stands for an object; None: it travels itself
Found = Callable[[Any], Any]  # the object of a reference


class NotReadError(ValueError):
    """Something that must not travel was sent."""


def written(value: object, refer: Refer) -> bytes:
    """A value as bytes."""
    to = io.BytesIO()
    _Writer(to, refer).dump(value)
    return to.getvalue()


def read(sent: bytes, found: Found) -> Any:
    """The value of these bytes. Raises NotReadError for all but plain data, arrays and classes of ours."""
    try:
        return _Reader(io.BytesIO(sent), found).load()
    except (
        pickle.UnpicklingError,
        AttributeError,
        EOFError,
        ImportError,
        IndexError,
        TypeError,
    ) as error:
        raise NotReadError(f"What was sent cannot be read: {error}") from error


class _Writer(pickle.Pickler):
    def __init__(self, to: io.BytesIO, refer: Refer) -> None:
        super().__init__(to, protocol=5)
        self._refer = refer

    def persistent_id(self, obj: Any) -> object:
        return self._refer(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(
            obj, ValueError
        ):  # a refusal: its class may be made from other words than its sentence
            return _refusal, (type(obj), str(obj), vars(obj))
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, sent: io.BytesIO, found: Found) -> None:
        super().__init__(sent)
        self._found = found

    def persistent_load(self, pid: Any) -> Any:
        return self._found(pid)

    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        if (module, name) == (__name__, _refusal.__name__):
            return _refusal
        if module.startswith(_OURS):
            found = super().find_class(module, name)
            # The name may lead to what the module has imported.
            ours = isinstance(found, type) and found.__module__.startswith(_OURS)
            if ours and _holds_data(found):
                return found
        raise NotReadError(f"{module}.{name} must not travel.")


def _holds_data(kind: type) -> bool:
    """Whether a class of ours only holds data: a dataclass, a named tuple, names of an enumeration, a
    refusal."""
    return (
        hasattr(kind, "__dataclass_fields__")
        or hasattr(kind, "_fields")
        or issubclass(kind, Enum | ValueError)
        or kind in (GPT2Subset, GPT2WithEnds, Words)
    )


def _refusal(kind: type, sentence: str, about: dict[str, Any]) -> ValueError:
    if not issubclass(kind, ValueError):
        raise NotReadError(f"{kind.__name__} is no refusal.")
    made = kind.__new__(kind, sentence)
    vars(made).update(about)
    return made
