"""Loaded models within a bound of bytes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from cachetools import LRUCache

if TYPE_CHECKING:
    from torch import Tensor

    from model.run.model import Model


class LoadedModels(LRUCache[str, "Model"]):
    """Loaded models within a bound of bytes; `gone` are the names of those that were unloaded."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes, getsizeof=model_size)
        self.gone: list[str] = []

    def popitem(self) -> tuple[str, "Model"]:
        name, model = super().popitem()
        self.gone.append(name)
        return name, model


def model_size(model: "Model") -> int:
    """Bytes of a model's weights, shared ones once."""
    return bytes_of(model.module.state_dict().values())


def weights_of(model: "Model") -> "WeakSet[Tensor]":
    """A model's weights, as long as they are in memory. They can outlive the model: the library's modules
    refer to each other in circles."""
    return WeakSet(model.module.parameters())


def bytes_of(weights: "Iterable[Tensor]") -> int:
    """Bytes of some weights, those that share memory once."""
    return sum({weight.data_ptr(): weight.nbytes for weight in weights}.values())
