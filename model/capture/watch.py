"""Watches one pass: PyTorch calls `__torch_function__` in place of every function that the module calls.

This mode holds for one thread. While it is active, PyTorch takes no fast path.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from model.capture.as_before import tensors_held_by
from model.capture.by_hand import by_hand
from model.capture.by_kernel import KERNELS, by_kernel
from model.capture.graph import Graph
from model.capture.node import Node, Operation, UnreadableError
from model.capture.operations import DROPOUTS, PRODUCTS
from model.capture.record import Gap, recorded
from model.capture.seen import Seen
from model.trace.records import Attention

_KERNEL = "scaled_dot_product_attention"
_UNSEEN = re.compile(r"attention|attn|fmha", re.IGNORECASE)
_SEEN_INSIDE = {*KERNELS, "multi_head_attention_forward"}


@dataclass(frozen=True, eq=False)
class Call:
    """One call of attention: its record, the module that made it, and how well it holds."""

    record: Attention
    module: str
    gap: Gap


class Watch(TorchFunctionMode):
    """Records the attention of one text of a batch."""

    def __init__(self, module: nn.Module, inputs: list[Tensor], text: int) -> None:
        super().__init__()
        self._names = {id(part): name for name, part in module.named_modules()}
        self._own_name = type(module).__name__
        self._graph, self._text = Graph(inputs, tensors_held_by(module)), text
        self._last: tuple[str, Seen] | None = None  # the last call's module, and what was seen
        self.calls: list[Call] = []
        self.refused: list[str] = []  # a sentence for each call without a record
        self.reached: set[str] = set()  # modules with attention, recorded or not

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given, named = args, dict(kwargs or {})
        name = name_of(function)
        if function is F.multi_head_attention_forward:
            asked = inspect.signature(function).bind(*given, **named)
            asked.arguments["training"] = False
            with self:
                return _seen_inside(function)(*asked.args, **asked.kwargs)
        if name in DROPOUTS:
            return given[0] if given else named["input"]
        if name == _KERNEL:
            given, named = _without_kernel_dropout(given, named)
        reason = _nested(name, given)
        # Before it, for it may write in place.
        call = self._graph.call(name, function, given, named)
        with _counting_writes(function, given, named):
            result = function(*given, **named)
        self._graph.add(call, given[0] if name == "__setitem__" else result)
        if reason or (_UNSEEN.search(name) and name not in _SEEN_INSIDE and _computes(result)):
            self._refuse(reason or f"it computes attention by `{name}`, whose steps cannot be seen")
        elif name in KERNELS | PRODUCTS:
            written = result[0] if isinstance(result, tuple) else result
            self._look_at(self._graph.node(written), call)
        return result

    def _look_at(self, node: Node, call: Operation) -> None:
        """Records what ends in this operation, if it is attention."""
        try:
            is_kernel = call.name in KERNELS
            seen = by_kernel(Node(node.tensor, call)) if is_kernel else by_hand(node)
            if seen is not None:
                self._record(seen)
                self._graph.forget(node.tensor)
        except UnreadableError as error:
            self._refuse(str(error))

    def _record(self, seen: Seen) -> None:
        """Queries that a module reads in pieces, with the same keys, become one record."""
        module, own = self._module(), seen.of_text(self._text)
        whole = own.after(self._last[1]) if self._last and self._last[0] == module else None
        self._last = module, whole or own
        if whole is not None:
            self.calls.pop()
        record, gap = recorded(self._last[1])
        self.calls.append(Call(record, module, gap))

    def _refuse(self, reason: str) -> None:
        self.refused.append(f"{self._module()} has attention that is not recorded: {reason}.")

    def _module(self) -> str:
        """The name of the innermost module that is running."""
        frame: FrameType | None = sys._getframe(1)
        found = self._own_name
        while frame is not None:
            names = frame.f_code.co_varnames
            if names[:1] and frame.f_code.co_argcount:
                name = self._names.get(id(frame.f_locals.get(names[0])))
                if name is not None:
                    found = name or self._own_name
                    break
            frame = frame.f_back
        self.reached.add(found)
        return found


def _counting_writes(
    function: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any]
) -> AbstractContextManager[object]:
    """Turns inference mode off for one function, because PyTorch counts no writes in it, and an overwritten
    tensor would go unnoticed. It stays on for a write to a tensor that was made in it."""
    if not torch.is_inference_mode_enabled():
        return nullcontext()
    name = str(getattr(function, "__name__", ""))
    writes = name == "__setitem__" or name.startswith("__i") or name.endswith("_")
    target = given[0] if writes and given else named.get("out")
    is_inside = isinstance(target, Tensor) and target.is_inference()
    return nullcontext() if is_inside else _normal()


@contextmanager
def _normal() -> Iterator[None]:
    with torch.inference_mode(False), torch.no_grad():
        yield


def name_of(function: Callable[..., Any]) -> str:
    """PyTorch's name of an operation, the same for function, method and in-place form."""
    name = str(getattr(function, "__name__", ""))
    if name == "__get__":  # an attribute, such as .T
        name = str(getattr(getattr(function, "__self__", None), "__name__", ""))
    if name.startswith("__i") and name.endswith("__"):
        name = name[3:-2]
    name = name.partition(".")[0]
    return name.rstrip("_") if not name.startswith("_") else name


def _seen_inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of one of PyTorch's own Python functions that runs its steps instead of calling the mode, so
    that the steps are seen."""
    if not isinstance(function, FunctionType):
        return function
    names = {**function.__globals__, "has_torch_function": lambda _: False}
    own = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    own.__kwdefaults__ = function.__kwdefaults__
    return own


def _without_kernel_dropout(
    given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if len(given) > 4:
        return (*given[:4], 0.0, *given[5:]), named
    return given, named | {"dropout_p": 0.0}


def _nested(name: str, given: tuple[Any, ...]) -> str:
    nested = any(isinstance(one, Tensor) and one.is_nested for one in given)
    return "its tensors are nested" if nested and name == _KERNEL else ""


def _computes(result: Any) -> bool:
    found = result if isinstance(result, tuple | list) else (result,)
    return any(isinstance(one, Tensor) and one.is_floating_point() for one in found)
