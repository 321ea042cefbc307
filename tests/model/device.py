"""A device of the tests' own: its tensors have numbers, and whatever makes a pass wait for it is counted.

PyTorch sees the device `meta`, which every computer has; behind each tensor lies one on the processor, on
which each operation runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from model import Model

DEVICE, CPU = torch.device("meta"), torch.device("cpu")
# Operations whose result has a size, or is a number of Python's: they wait until all before them is computed.
WAITING = {
    "_local_scalar_dense", "item", "is_nonzero", "equal", "allclose", "nonzero", "nonzero_numpy",
    "argwhere", "masked_select", "unique_dim", "_unique2", "unique_consecutive", "bincount",
    "repeat_interleave.Tensor",
}  # fmt: skip


@dataclass
class Crossings:
    """What was copied from the device or to it, and what waited for it, in order."""

    copied: list[str] = field(default_factory=list)  # from the device
    fed: list[str] = field(default_factory=list)  # to it, and waited for
    waited: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        return [*self.copied, *self.fed, *self.waited]

    def clear(self) -> None:
        for some in (self.copied, self.fed, self.waited):
            some.clear()


class OnDevice(Tensor):
    """A tensor of the device."""

    behind: Tensor  # on the processor
    crossings: Crossings

    @staticmethod
    def __new__(cls, behind: Tensor, crossings: Crossings) -> "OnDevice":
        made: OnDevice = Tensor._make_wrapper_subclass(
            cls,
            behind.shape,
            strides=behind.stride(),
            storage_offset=behind.storage_offset(),
            dtype=behind.dtype,
            device=DEVICE,
        )
        made.behind, made.crossings = behind.detach(), crossings
        return made

    def __init__(self, *given: object) -> None:
        pass

    def data_ptr(self) -> int:
        return self.behind.data_ptr()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, given: Sequence[Any] = (), named: Any = None
    ) -> Any:
        return _run(operation, given, named or {})


class _Made(TorchDispatchMode):
    """Tensors that are made on the device within it, and those that come to it."""

    def __init__(self, crossings: Crossings) -> None:
        super().__init__()
        self.crossings = crossings

    def __torch_dispatch__(
        self, operation: Any, types: Any, given: Sequence[Any] = (), named: Any = None
    ) -> Any:
        return _run(operation, given, named or {}, self.crossings)


class _Written(TorchFunctionMode):
    """Tensors that are made there of Python's numbers: PyTorch makes those without an operation."""

    def __torch_function__(
        self, function: Any, types: Any, given: Sequence[Any] = (), named: Any = None
    ) -> Any:
        named = named or {}
        if function is torch.tensor and named.get("device") == DEVICE:
            return function(*given, **(named | {"device": CPU})).to(DEVICE)
        return function(*given, **named)


def _run(
    operation: Any,
    given: Sequence[Any],
    named: Mapping[str, Any],
    crossings: Crossings | None = None,
) -> Any:
    """An operation on what lies behind its tensors. Its result is of the device where one of them is."""
    leaves = tree_leaves((given, dict(named)))
    there = [one for one in leaves if isinstance(one, OnDevice)]
    here = [one for one in leaves if isinstance(one, Tensor) and not isinstance(one, OnDevice)]
    counted = crossings or there[0].crossings
    asked = next((one for one in leaves if isinstance(one, torch.device)), None)
    stays = bool(there) if asked is None else asked == DEVICE
    name = operation.overloadpacket.__name__
    told = f"{name} {[tuple(one.shape) for one in (*there, *here)]}"
    if there and not stays:
        counted.copied.append(told)
    if stays and any(one.ndim for one in here) and not _is_unwaited(operation, given, named):
        counted.fed.append(told)  # a list of indices is fed too
    if there and _waits(operation, name, given):
        counted.waited.append(told)
    if name == "copy_" and there and not isinstance(given[0], OnDevice):
        counted.copied.append(told)
        stays = False
    plain = tree_map(lambda one: _behind(one), (tuple(given), dict(named)))
    if name == "histc":  # of experts' numbers; on the processor of floats alone
        plain = tree_map(lambda one: one.float() if isinstance(one, Tensor) else one, plain)
    made = operation(*plain[0], **plain[1])
    if name.endswith("_") and not name.startswith("_") and isinstance(given[0], Tensor):
        return given[0]
    return (
        tree_map(lambda one: OnDevice(one, counted) if isinstance(one, Tensor) else one, made)
        if stays
        else made
    )


def _is_unwaited(operation: Any, given: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a copy is asked for without waiting for it."""
    names = [one.name for one in operation._schema.arguments]
    return bool((dict(zip(names, given, strict=False)) | dict(named)).get("non_blocking"))


def _waits(operation: Any, name: str, given: Sequence[Any]) -> bool:
    if name in ("index", "index_put", "index_put_"):  # a mask of bool has as many cells as are true
        return any(isinstance(one, Tensor) and one.dtype == torch.bool for one in given[1] or ())
    return name in WAITING or f"{name}.{operation._overloadname}" in WAITING


def _behind(one: Any) -> Any:
    if isinstance(one, OnDevice):
        return one.behind
    if isinstance(one, torch.device):
        return CPU
    return one


def moved(model: Model, crossings: Crossings) -> Model:
    """The model with its weights on the device. It is changed, as any model that moves is."""
    there: dict[int, Tensor] = {}  # shared weights stay shared
    with torch.inference_mode():  # in which each pass runs
        for part in model.module.modules():
            for names, weights in ((part._parameters, True), (part._buffers, False)):
                for name, own in names.items():
                    if own is None:
                        continue
                    if id(own) not in there:
                        made = OnDevice(own.detach(), crossings)
                        there[id(own)] = nn.Parameter(made, False) if weights else made
                    names[name] = there[id(own)]
    return Model(
        model.name,
        model.module,
        model.tokenizer,
        DEVICE,
        target_tokenizer=model.target_tokenizer,
        borrowed=True,
    )


@contextmanager
def device(crossings: Crossings) -> Iterator[None]:
    """Within it tensors are made on the device and come to it."""
    with _Made(crossings), _Written():
        yield


def of_module(module: nn.Module) -> Iterator[Tensor]:
    """The weights and buffers of a module."""
    yield from module.parameters()
    yield from module.buffers()
