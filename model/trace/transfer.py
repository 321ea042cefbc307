"""From a device to the processor, many tensors in one copy: each copy waits anew until the device is done."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from model.trace.lazy import LARGEST_COPY, Lazy, memory_of


def on_processor(values: Tensor) -> Tensor:
    """A tensor on the processor; itself where it lies there."""
    if values.is_cuda:  # straight into page-locked memory: a fifth to a tenth of the time
        return torch.empty_like(values, device="cpu", pin_memory=True).copy_(values)
    return values.cpu()


def together(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors on the processor. Those of a device come in one copy, or in some of `LARGEST_COPY`
    bytes."""
    found = list(tensors)
    there = [
        (n, unrepeated(one.detach(), range(one.ndim)).contiguous())
        for n, one in enumerate(tensors)
        if one.device.type != "cpu"
    ]
    there.sort(key=lambda one: -one[1].element_size())  # each begins at a multiple of its own
    for some in _portions(there):
        flat = torch.cat([one.flatten().view(torch.uint8) for _, one in some])
        pieces = on_processor(flat).split([one.nbytes for _, one in some])
        for (n, one), piece in zip(some, pieces, strict=True):
            found[n] = piece.view(one.dtype).view(one.shape).expand(tensors[n].shape)
    return found


def unrepeated(x: Tensor, axes: Iterable[int]) -> Tensor:
    """A tensor without what it repeats along these axes."""
    for axis in axes:
        x = x.narrow(axis, 0, 1) if x.stride(axis) == 0 and x.shape[axis] else x
    return x


def _portions(tensors: list[tuple[int, Tensor]]) -> Iterator[list[tuple[int, Tensor]]]:
    some: list[tuple[int, Tensor]] = []
    nbytes = 0
    for one in tensors:
        if some and nbytes + one[1].nbytes > LARGEST_COPY:
            yield some
            some, nbytes = [], 0
        some.append(one)
        nbytes += one[1].nbytes
    if some:
        yield some


class DeviceArray(Lazy[Any]):
    """What `make` gives for a tensor on a device."""

    def __init__(
        self, make: Callable[..., Any], tensor: Tensor, *how: object, nbytes: int = 0
    ) -> None:
        super().__init__(partial(make, tensor, *how), nbytes=nbytes, source=tensor)
        self._of, self._how = make, how

    def arrive(self, copy: Tensor) -> None:
        """Takes the tensor's copy on the processor, and is read."""
        self._make = partial(self._of, copy, *self._how)
        self.get()


def fetch(*values: object) -> None:
    """Reads what lies on a device among arrays, records and what holds some, in one copy."""
    pieces = (piece for piece, _ in memory_of(values))
    waiting = {id(one): one for piece in pieces for one in _unread(piece)}
    tensors = [one.source for one in waiting.values()]
    for one, copy in zip(waiting.values(), together(tensors), strict=True):
        one.arrive(copy)


def _unread(piece: object) -> Iterator[DeviceArray]:
    if isinstance(piece, DeviceArray):
        yield piece
    elif isinstance(piece, Lazy) and isinstance(piece.source, tuple):
        for one in piece.source:
            if not one.is_read:
                yield from _unread(one)


class Room:
    """Lazy arrays of the latest passes, within a bound: beyond it the oldest are read, if somebody still
    holds them, and let go of what they came from."""

    def __init__(self) -> None:
        self._passes: deque[tuple[int, tuple[ref[Lazy[Any]], ...]]] = deque()  # with their bytes
        self._lock = Lock()

    def add(self, of_pass: Sequence[Lazy[Any]], most: int) -> None:
        """Those of one more pass. most: bytes of all."""
        if not of_pass:
            return
        oldest: list[ref[Lazy[Any]]] = []
        with self._lock:
            self._passes.append((sum(one.nbytes for one in of_pass), tuple(map(ref, of_pass))))
            over = sum(nbytes for nbytes, _ in self._passes) - most
            while over > 0 and self._passes:
                nbytes, gone = self._passes.popleft()
                over -= nbytes
                oldest += gone
        alive = [one for held in oldest if (one := held()) is not None]
        fetch(*alive)
        for one in alive:
            one.get()
