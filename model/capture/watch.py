"""Watches one pass, and gives the module back as it was: PyTorch calls `__torch_function__` in place of every
function that the module calls.

This mode holds for one thread. While it is active, PyTorch takes no fast path.
"""

import inspect
import re
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from types import FrameType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle
from torch.utils.weak import WeakIdKeyDictionary

from model.capture.around import NOTED, Notes, is_norm_like
from model.capture.change import KERNEL, Call, CallChange
from model.capture.lineage import (
    DROPOUTS,
    FOLLOWED,
    PRODUCTS,
    Lineage,
    Node,
    TensorOrigin,
    UnreadableError,
    born,
    inherited,
    nodes_in,
    version,
)
from model.capture.record import Gap, Seen, recorded
from model.capture.stages import KERNELS, by_hand, by_kernel
from model.trace.records import Attention

DEEPEST = 64  # operations that are remembered behind a tensor


class Graph:
    """The operations behind all tensors that are alive, `DEEPEST` at most behind each.

    inputs: tensors that the pass is given. own: parameters, buffers and other tensors of the module.
    """

    def __init__(self, inputs: Iterable[Tensor], own: Iterable[Tensor]) -> None:
        self._operations = WeakIdKeyDictionary()
        self._serials = count()
        for serial, tensor in enumerate(own, 1):
            lineage = Lineage(stream=frozenset({-serial}))
            self._operations[tensor] = TensorOrigin(-serial, version(tensor), lineage=lineage)
        self.read_anew(inputs)

    def read_anew(self, tensors: Iterable[Tensor]) -> None:
        """Takes tensors as inputs, wherever they come from."""
        for tensor in tensors:
            made = self._note(tensor)
            made.lineage = born(tensor, made.serial)

    def node(self, tensor: Tensor) -> Node:
        """A tensor with what is known of it; a new one came from outside."""
        known: TensorOrigin | None = self._operations.get(tensor)
        if known is None:
            known = self._note(tensor)
            known.lineage = Lineage(stream=frozenset({known.serial}))
        return Node(tensor, known)

    def _note(self, tensor: Tensor) -> TensorOrigin:
        made = self._operations[tensor] = TensorOrigin(next(self._serials), version(tensor))
        return made

    def _nodes_for(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            return self.node(argument)
        if type(argument) in (tuple, list):
            return type(argument)(self._nodes_for(one) for one in argument)
        return argument

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        given: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> TensorOrigin:
        """An operation with what it read, of no tensor yet.

        Args:
            given, named: its arguments; tensors among them become nodes.
        """
        arguments = tuple(self._nodes_for(one) for one in given)
        keywords = {key: self._nodes_for(one) for key, one in named.items()}
        return TensorOrigin(-1, 0, name, function, arguments, keywords)

    def add(self, call: TensorOrigin, result: Any) -> None:
        """Notes what an operation gave. What is not in `FOLLOWED` keeps its lineage, but no arguments."""
        several = isinstance(result, tuple | list)
        read = [*nodes_in((call.arguments, tuple(call.keywords.values())))]
        depth = 1 + max((node.by.depth for node in read), default=0)
        follows = call.name in FOLLOWED and depth <= DEEPEST
        for number, tensor in enumerate(result if several else (result,)):
            if not isinstance(tensor, Tensor):
                continue
            if any(tensor is node.tensor and node.is_intact for node in read):
                continue  # handed through unchanged
            made = self._note(tensor)
            by = replace(call, serial=made.serial, output=number if several else None)
            made.lineage = inherited(Node(tensor, by))
            if follows:
                made.name, made.function, made.depth = call.name, call.function, depth
                made.arguments, made.keywords, made.output = by.arguments, by.keywords, by.output

    def forget(self, tensor: Tensor) -> None:
        """Drops what is behind a tensor, except its lineage: attention was found there."""
        lineage = self.node(tensor).lineage
        self._note(tensor).lineage = lineage


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
            # A dictionary, such as a module's attributes, is emptied only where its order changed:
            # another thread may be reading it.
            if isinstance(container, dict):
                for added in [key for key in container if key not in before]:
                    del container[added]
                container.update(before)
            if [*map(id, container)] != [*map(id, before)]:
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


_UNSEEN = re.compile(r"attention|attn|fmha", re.IGNORECASE)
_SEEN_INSIDE = {*KERNELS, "multi_head_attention_forward"}


@dataclass(frozen=True, eq=False)
class WatchedCall:
    """One call of attention: its record, the module that made it, and how well it holds."""

    record: Attention
    module: str
    gap: Gap
    output: int  # the serial number of the tensor with the outputs of its heads
    turn: int  # how many passes of the whole module had begun
    call: Call | None  # None: there was more than one


class Watch(TorchFunctionMode):
    """Records the attention of one text of a batch. changes: what is changed in which call. writes: whether
    the module runs several times, on what it wrote."""

    def __init__(
        self,
        module: nn.Module,
        inputs: list[Tensor],
        text: int,
        changes: Mapping[Call, CallChange] | None = None,
        *,
        writes: bool = False,
    ) -> None:
        super().__init__()
        self._changes = changes or {}
        self._counts = Counter[str]()  # of calls so far, by kind
        self._names = {id(part): name for name, part in module.named_modules()}
        self._own_name = type(module).__name__
        self._whole, self.writes = module, writes
        self.passes: list[Tensor | None] = []  # the ids that each pass of the whole module read
        self._norms = [part for part in module.modules() if is_norm_like(part)]
        self._hooks: list[RemovableHandle] = []
        self._thread = threading.get_ident()
        self.notes = Notes()
        self._graph, self._text = Graph(inputs, tensors_held_by(module)), text
        # The last call's module and pass, and what was seen.
        self._last: tuple[tuple[str, int], Seen] | None = None
        self.calls: list[WatchedCall] = []
        self.refused: list[str] = []  # a sentence for each call without a record
        self.reached: set[str] = set()  # modules with attention, recorded or not

    def __enter__(self) -> "Watch":
        self._hooks = [norm.register_forward_hook(self._note_norm) for norm in self._norms]
        begin = self._whole.register_forward_pre_hook(self._begin_pass, with_kwargs=True)
        self._hooks.append(begin)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def _begin_pass(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before the whole module runs. What it is given while it writes is as new as a call's own inputs."""
        if threading.get_ident() != self._thread:
            return
        ids = named.get("decoder_input_ids", named.get("input_ids", given[0] if given else None))
        is_ids = isinstance(ids, Tensor) and ids.ndim == 2 and not ids.is_floating_point()
        self.passes.append(ids if is_ids else None)
        if self.writes:
            self._graph.read_anew(
                one for one in (*given, *named.values()) if isinstance(one, Tensor)
            )

    def _note_norm(self, module: nn.Module, given: tuple[Any, ...], made: Any) -> None:
        """After a module that may be a norm has run, in this thread."""
        is_ours = threading.get_ident() == self._thread
        if (
            is_ours
            and len(given) == 1
            and isinstance(given[0], Tensor)
            and isinstance(made, Tensor)
        ):
            with torch._C.DisableTorchFunction():
                read, written = (self._graph.node(one) for one in (given[0], made))
                if read.is_intact:
                    self.notes.note_norm(module, read, written)

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
        nested = any(isinstance(one, Tensor) and one.is_nested for one in given)
        reason = "its tensors are nested" if nested and name == KERNEL else ""
        if name == KERNEL:
            given, named = _without_kernel_dropout(*_with_plain_mask(given, named))
            change = self._changes.get((KERNEL, self._counts[KERNEL]))
            if change is not None and not reason:
                given, named = change.arguments(given, named)
        # Before it, for it may write in place.
        call = self._graph.call(name, function, given, named)
        with _counting_writes(function, given, named):
            result = function(*given, **named)
        self._graph.add(call, given[0] if name == "__setitem__" else result)
        if name in NOTED and isinstance(result, Tensor):
            self.notes.note(call, self._graph.node(result))
        if reason or (_UNSEEN.search(name) and name not in _SEEN_INSIDE and _computes(result)):
            self._refuse(reason or f"it computes attention by `{name}`, whose steps cannot be seen")
        elif name in KERNELS | PRODUCTS:
            written = result[0] if isinstance(result, tuple) else result
            self._look_at(self._graph.node(written), call)
        return result

    def _look_at(self, node: Node, call: TensorOrigin) -> None:
        """Records what ends in this operation, if it is attention."""
        is_kernel = call.name in KERNELS
        number = self._counts[call.name]
        self._counts[call.name] += is_kernel
        try:
            seen = by_kernel(Node(node.tensor, call)) if is_kernel else by_hand(node)
            if seen is not None:
                seen = seen.heads_apart().without_empty_places()
                this = call.name, number
                self._counts[call.name] += not is_kernel
                self._record(seen, node.serial, this)
                change = self._changes.get(this)
                if change is not None and change.ablated:
                    if seen.laid is None or not _share_memory(seen.laid, node.tensor):
                        raise UnreadableError(
                            "its heads cannot be told apart in the module's memory"
                        )
                    change.leave_out(seen.laid, seen.rows.texts)
                self._graph.forget(node.tensor)
        except UnreadableError as error:
            self._refuse(str(error))

    def _record(self, seen: Seen, output: int, call: Call) -> None:
        """Queries that a module reads in pieces, with the same keys, become one record."""
        module, own = self._module(), seen.of_text(self._text)
        where = module, len(self.passes)
        whole = own.after(self._last[1]) if self._last and self._last[0] == where else None
        self._last = where, whole or own
        if whole is not None:
            self.calls.pop()
        record, gap = recorded(self._last[1])
        alone = call if whole is None else None
        self.calls.append(WatchedCall(record, module, gap, output, len(self.passes), alone))

    def lineage(self, tensor: Tensor) -> Lineage:
        """Where the cells of a tensor of this pass come from."""
        return self._graph.node(tensor).lineage

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


def _with_plain_mask(
    given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """PyTorch's `causal_upper_left` and `causal_lower_right` are tensors whose numbers were never written: in
    their place the mask that they stand for, (query, key), True = may look."""
    biases = sys.modules.get("torch.nn.attention.bias")
    mask = given[3] if len(given) > 3 else named.get("attn_mask")
    if biases is None or not isinstance(mask, biases.CausalBias):
        return given, named
    queries, keys = mask.seq_len_q, mask.seq_len_kv
    later = keys - queries if mask.variant == biases.CausalVariant.LOWER_RIGHT else 0
    device = given[0].device if given else named["query"].device
    plain = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(later)
    if len(given) > 3:
        return (*given[:3], plain, *given[4:]), named
    return given, named | {"attn_mask": plain}


def _without_kernel_dropout(
    given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if len(given) > 4:
        return (*given[:4], 0.0, *given[5:]), named
    return given, named | {"dropout_p": 0.0}


def _share_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _computes(result: Any) -> bool:
    found = result if isinstance(result, tuple | list) else (result,)
    return any(isinstance(one, Tensor) and one.is_floating_point() for one in found)
