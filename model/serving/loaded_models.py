"""Loaded models within a bound of bytes."""

from typing import TYPE_CHECKING

from cachetools import LRUCache

if TYPE_CHECKING:
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
    weights = model.module.state_dict().values()
    return sum({weight.data_ptr(): weight.nbytes for weight in weights}.values())
