"""Where the maps of a model stand among its parts, for our own models and those of libraries alike."""

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from model.trace.arrays import Wide
from model.trace.collect import numbers_of

if TYPE_CHECKING:
    from model.run.model import Model


def whole(model: "Model") -> nn.Module:
    """The module of a model, as the tree of parts that it is."""
    model.require_run()
    if not isinstance(model.module, nn.Module):
        raise TypeError(f"{model.name} is not a PyTorch module.")
    return model.module


def path_of(root: nn.Module, weight: Tensor) -> str:
    """The path of the linear map that has this weight, transposed or not."""
    maps = ((path, part) for path, part in root.named_modules() if is_map(part))
    return next(
        path for path, part in maps if weight_and_bias(part)[0].data_ptr() == weight.data_ptr()
    )


def parts_around(root: nn.Module, path: str) -> list[nn.Module]:
    """The parts with weights in the smallest part that holds the map at this path and another one."""
    parts: list[nn.Module] = []
    while path and sum(map(is_map, parts)) < 2:
        path = path.rpartition(".")[0]
        parts = list(root.get_submodule(path).modules())
    return [part for part in parts if isinstance(getattr(part, "weight", None), Tensor)]


def is_map(part: nn.Module) -> bool:
    """Whether a part is a linear map; GPT-2's, Conv1D, has its matrix transposed."""
    return isinstance(part, nn.Linear) or type(part).__name__ == "Conv1D"


def weight_and_bias(part: nn.Module) -> tuple[Tensor, Tensor | None]:
    """The weight of a map or a norm, and its bias if it has one."""
    return part.get_parameter("weight"), getattr(part, "bias", None)


def matrix_and_bias(part: nn.Module) -> tuple[Tensor, Tensor | None]:
    """(out, in) and (out,): the matrix of a map, and its bias if it has one. GPT-2's lies on its side."""
    weight, bias = weight_and_bias(part)
    return (weight if isinstance(part, nn.Linear) else weight.T), bias


def wide(tensor: Tensor) -> Wide:
    """A tensor in numpy and float64."""
    return numbers_of(tensor).astype(np.float64)
