"""Whether two things are the same to the last bit, whatever they are made of."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from model import Model
from model.trace.records import Attention
from model.trace.trace import Logits, Trace

TIMES = (".seconds", ".without")  # of the clock: no two runs have the same


def differences(one: Any, other: Any) -> Iterator[str]:
    """Where two values differ, each as a path to what does. How long something took is not compared."""
    for at in _differences(one, other, ""):
        if not at.partition(":")[0].endswith(TIMES):
            yield at


def _differences(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        one, other = one.numpy(force=True), other.numpy(force=True)
    if isinstance(one, np.ndarray):
        if not isinstance(other, np.ndarray) or (one.dtype, one.shape) != (
            other.dtype,
            other.shape,
        ):
            yield f"{path}: {type(one)} and {type(other)}"
        elif one.tobytes() != other.tobytes():
            yield path
    elif isinstance(one, Model):
        if not isinstance(other, Model) or one.name != other.name:
            yield f"{path}: {one!r} and {other!r}"
    elif isinstance(one, BaseException):
        if (type(one), str(one), vars(one)) != (type(other), str(other), vars(other)):
            yield f"{path}: {one!r} and {other!r}"
    elif isinstance(one, Trace):
        yield from _fields(one, other, path, [field.name for field in dataclasses.fields(Trace)])
        yield from _fields(one, other, path, ["nbytes", "stacks", "source"])
        if one.check() != other.check():
            yield f"{path}.check"
    elif isinstance(one, Logits):
        for row in range(one.shape[0]):
            yield from _differences(one.after(row), other.after(row), f"{path}.after({row})")
        yield from _differences(one.all, other.all, f"{path}.all")
    elif isinstance(one, Mapping):
        if list(one) != list(other):
            yield f"{path}: {list(one)} and {list(other)}"
        for name in one.keys() & other.keys():
            yield from _differences(one[name], other[name], f"{path}[{name!r}]")
    elif dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        yield from _fields(one, other, path, names)
        if isinstance(one, Attention):
            yield from _fields(one, other, path, ["sizes", "kind", "name"])
        if hasattr(one, "check") and callable(one.check) and one.check() != other.check():
            yield f"{path}.check"
    elif isinstance(one, Sequence) and not isinstance(one, str | bytes):
        if len(one) != len(other):
            yield f"{path}: {len(one)} and {len(other)}"
        for number, pair in enumerate(zip(one, other, strict=False)):
            yield from _differences(*pair, f"{path}[{number}]")
    elif hasattr(one, "__dict__") and not callable(one):
        yield from _differences(_told(one), _told(other), path)
    elif one != other and not (one != one and other != other):  # or both are not a number
        yield f"{path}: {one!r} and {other!r}"


def _told(value: Any) -> dict[str, Any]:
    """What an object of another kind holds, but for how it gets there."""
    return {name: held for name, held in vars(value).items() if not callable(held)}


def _fields(one: Any, other: Any, path: str, names: list[str]) -> Iterator[str]:
    for name in names:
        yield from _differences(getattr(one, name), getattr(other, name), f"{path}.{name}")
