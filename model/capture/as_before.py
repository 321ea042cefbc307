"""Gives a module back as it was before a pass: the same objects, with the same contents and numbers."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

_FILLED = (dict, OrderedDict, defaultdict, list, set, deque)


@contextmanager
def unchanged(module: nn.Module) -> Iterator[None]:
    """Restores attributes, training flags, the contents of lists and dictionaries among them, and the numbers
    of all tensors except the parameters, also after an error."""
    held = _held(module)
    containers = [(one, one.copy()) for one in held if type(one) in _FILLED]
    numbers = [(one, one.detach().clone()) for one in held if isinstance(one, Tensor)]
    try:
        yield
    finally:
        for container, before in containers:
            container.clear()
            fill = container.extend if isinstance(container, list | deque) else container.update
            fill(before)
        with torch.inference_mode():  # the one mode that may write to tensors of inference
            for tensor, before in numbers:
                _put_back(tensor, before)


def tensors_held_by(module: nn.Module) -> list[Tensor]:
    """Its parameters, and all other tensors in its attributes."""
    return [*module.parameters(), *(one for one in _held(module) if isinstance(one, Tensor))]


def _held(module: nn.Module) -> list[Any]:
    """The attributes of a module and its parts, and all containers and tensors inside them, each once."""
    found: dict[int, Any] = {}
    waiting: list[Any] = [vars(part) for part in module.modules()]
    while waiting:
        one = waiting.pop()
        is_container = type(one) in (*_FILLED, tuple)
        if id(one) in found or not (is_container or _is_kept(one)):
            continue
        found[id(one)] = one
        if is_container:
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return [*found.values()]


def _is_kept(value: Any) -> bool:
    """Whether it is a tensor whose numbers a pass may change: no parameter, and none without numbers."""
    return (
        isinstance(value, Tensor)
        and not isinstance(value, nn.Parameter)
        and not is_lazy(value)
        and value.layout is torch.strided
        and not (value.is_meta or value.is_nested or value.is_quantized)
    )


def _put_back(tensor: Tensor, before: Tensor) -> None:
    if tensor.shape != before.shape:
        tensor.data = before
        return
    same = (tensor == before) | ((tensor != tensor) & (before != before))  # NaN is as it was
    if not same.all():
        tensor.copy_(before)
