"""Weights in float32, those of one layer at a time: for a model that would not fit into memory, or that is
held in half precision and is to be checked in single.

Whatever reads a weight of a part gets a copy in float32. It is kept until a part of another layer is read;
what stands outside of the layers is kept throughout. The weights themselves stay where they are: in the
memory of the model, or in its files, of which the system reads a page when it is needed.
"""

import ctypes
import math
import mmap
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.system import allocator

_LAYER = re.compile(r"(?:.*?\.)?\d+(?=\.|$)")  # of a path inside a model: model.layers.3


class LoadedLayers:
    """Which weights are in memory as float32: those outside of the layers, and those of one layer."""

    def __init__(self, files: "MappedFiles") -> None:
        self.layer = ""  # whose weights are held
        self.held: dict[int, nn.Parameter] = {}
        self.kept: dict[int, nn.Parameter] = {}
        self._files = files
        self._sized: dict[int, nn.Parameter] = {}

    def sized(self, weight: nn.Parameter) -> nn.Parameter:
        """One of the same size, which takes no memory and holds no number."""
        empty = torch.full((), math.nan, device=weight.device).expand(weight.shape)
        return self._sized.setdefault(id(weight), nn.Parameter(empty, requires_grad=False))

    def read(self, layer: str, name: str, weight: nn.Parameter) -> nn.Parameter:
        """A weight in float32. Reading one of another layer lets go of those of the layer before.

        Args:
            layer: that it belongs to; "": it stands outside of them.
            name: of the weight, for the error.
            weight: as the model holds it; it stays as it is.

        Raises ValueError where it is not finite.
        """
        known = self.held if layer else self.kept
        if layer not in ("", self.layer):
            self.layer = layer
            self.held.clear()
            allocator.give_back()  # what is recorded lies among the freed matrices, and glibc keeps the gaps
        if id(weight) not in known:
            made = weight.detach().to(torch.float32, copy=True)
            self._files.forget(weight)
            if made.numel() and not all(map(math.isfinite, torch.aminmax(made))):
                raise ValueError(f"its weights {name} are not all finite numbers")
            known[id(weight)] = nn.Parameter(made, requires_grad=False)
        return known[id(weight)]


class _Weights(dict[str, nn.Parameter | None]):
    """The weights of one part. Each is made when it is read by its name; a list of all gives their sizes, and
    no numbers."""

    def __init__(
        self, path: str, own: Mapping[str, nn.Parameter | None], layers: LoadedLayers
    ) -> None:
        super().__init__(
            {name: None if one is None else layers.sized(one) for name, one in own.items()}
        )
        found = _LAYER.match(path)
        self._layer = "" if found is None else found[0]
        self._path, self._own, self._layers = path, own, layers

    def __getitem__(self, name: str) -> nn.Parameter | None:
        weight = self._own[name]
        if weight is None:
            return None
        return self._layers.read(self._layer, f"{self._path}.{name}", weight)


def read_by_layer(body: nn.Module, files: "MappedFiles") -> LoadedLayers:
    """Makes a model read its weights as float32, those of one layer at a time. files: whose pages may be
    forgotten, with all that was written to them since."""
    layers = LoadedLayers(files)
    for path, part in body.named_modules():
        weights: Any = _Weights(path, part._parameters, layers)
        part._parameters = weights
    return layers


@contextmanager
def in_float32(body: nn.Module) -> Iterator[LoadedLayers]:
    """Somebody's model as `read_by_layer` leaves it. Afterwards it has its own weights again. Its pages stay
    in memory: its owner may have changed them."""
    own: list[tuple[Any, Any]] = [(part, part._parameters) for part in body.modules()]
    try:
        yield read_by_layer(body, MappedFiles(()))
    finally:
        for part, weights in own:
            part._parameters = weights


class MappedFiles:
    """Where files of weights are mapped into the memory of this process. Known on Linux only; elsewhere the
    system frees their pages when it needs room."""

    def __init__(self, ranges: tuple[tuple[int, int], ...]) -> None:
        self._ranges = ranges

    @classmethod
    def now(cls) -> "MappedFiles":
        maps = Path("/proc/self/maps")
        if sys.platform != "linux" or not maps.exists():
            return cls(())
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
        named = [line.split(maxsplit=5) for line in lines]
        ends = [one[0].split("-") for one in named if len(one) == 6 and _holds_weights(one[5])]
        return cls(tuple((int(first, 16), int(end, 16)) for first, end in ends))

    def forget(self, weight: Tensor) -> None:
        """Frees the pages that hold a weight, if they are of a file; they are read again when needed."""
        page = mmap.PAGESIZE
        first, end = weight.data_ptr(), weight.data_ptr() + weight.nbytes
        if not any(start <= first and end <= stop for start, stop in self._ranges):
            return
        first, end = -(-first // page) * page, end // page * page
        if end > first:
            advise = ctypes.CDLL(None).madvise
            advise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), mmap.MADV_DONTNEED)


def _holds_weights(path: str) -> bool:
    return path.endswith((".safetensors", ".safetensors (deleted)")) or "/blobs/" in path
