"""`capture`: one pass of anybody's own module, as a Trace, with stack, layer and name of each call of
attention."""

import re
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.capture.watch import Watch, WatchedCall, unchanged
from model.nn.config import Stack
from model.nn.places import Place
from model.trace.collect import words_of
from model.trace.given import GivenTokens
from model.trace.records import Attention
from model.trace.trace import Trace


def placed(calls: Sequence[WatchedCall]) -> tuple[Attention, ...]:
    """The records in order of execution, each with its stack, its layer and the name of its module.

    Self-attention before the first cross-attention belongs to the encoder, unless it is causal, shares a
    module with cross-attention, or reads another number of tokens in the same network. Without
    cross-attention, the network is a decoder where some of its attention is causal.
    """
    stacks = _stacks(calls)
    modules, layers = Counter[str](), Counter[tuple[Stack, bool]]()
    found = []
    for call, stack in zip(calls, stacks, strict=True):
        modules[call.module] += 1
        times = modules[call.module]
        crosses = call.record.kind == "cross"
        layer = layers[stack, crosses]
        if crosses:  # beside the self-attention that ran before it
            layer = max(layer, layers[stack, False] - 1)
        layers[stack, crosses] = layer + 1
        module = call.module if times == 1 else f"{call.module}#{times}"
        place = Place(stack, layer, call.record.kind, module)
        found.append(replace(call.record, place=place))
    return tuple(found)


def _stacks(calls: Sequence[WatchedCall]) -> Iterator[Stack]:
    kinds = [call.record.kind for call in calls]
    if "cross" not in kinds:
        for _ in kinds:
            yield "decoder" if "causal" in kinds else "encoder"
        return
    first = kinds.index("cross")
    layer = calls[first].module.rpartition(".")[0]
    keys = calls[first].record.key.shape[1]
    reading = 0
    for call in calls[:first]:
        beside = call.module.rpartition(".")[0] == layer and layer != ""
        another = "." in call.module and layer != "" and _network(call.module) != _network(layer)
        if call.record.kind == "causal" or beside:
            break
        if not another and call.record.key.shape[1] != keys:
            break
        reading += 1
    for number in range(len(calls)):
        yield "encoder" if number < reading else "decoder"


def _network(module: str) -> str:
    """The part of the whole that holds a module: "encoder" of "encoder.block.0"."""
    return module.partition(".")[0]


REASON = "It was captured from a module: only attention was recorded."
_ATTENTION = re.compile(r"attention|attn|mha", re.IGNORECASE)
_TOLD = 3  # modules that a refusal names
_ONE_AT_A_TIME = threading.Lock()  # for the time of a pass a module runs without dropout


class CaptureWarning(UserWarning):
    """Some attention of a module was not recorded; the sentence names it.

    >>> import warnings
    >>> from model.capture import CaptureWarning
    >>> warnings.simplefilter("error", CaptureWarning)  # what is not recorded stops the script
    """


def capture(
    module: nn.Module,
    *inputs: Any,
    tokens: GivenTokens | None = None,
    target_tokens: GivenTokens | None = None,
    batch: int = 0,
    **keywords: Any,
) -> Trace:
    """Runs a module once, `module(*inputs, **keywords)`, and records all its attention.

    It runs without dropout and without gradients, as after `module.eval()`; afterwards the module is as it
    was before, its training flags, buffers and attributes included. Seen are PyTorch's
    `scaled_dot_product_attention`, `nn.MultiheadAttention` and what is built of it, and softmax(QKᵀ)V
    written by hand. Each record is held against the module's own weights and output.

    tokens: the words or ids of the text, to name rows and columns; None: the numbers of the positions.
    target_tokens: those of the second text, where there is cross-attention. batch: which text of a batch
    to record; where a module reads texts in parts, such as windows, which part, as `doubt` says.

    Warns (CaptureWarning) of attention that is not recorded. Raises ValueError where none is, and says why.
    An error of the module itself is raised as it is.

    >>> import torch
    >>> from model.capture import capture
    >>> module = torch.nn.MultiheadAttention(32, 4, batch_first=True)
    >>> x = torch.randn(1, 5, 32)  # (batch, token, width)
    >>> trace = capture(module, x, x, x, tokens=["a", "b", "c", "d", "e"])
    >>> trace.attention[0].weights(0).shape, trace.check() < 1e-5
    ((5, 5), True)
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"capture wants a torch.nn.Module, not {type(module).__name__}.")
    if batch < 0:
        raise ValueError(f"batch is {batch}; texts of a batch are counted from 0.")
    _refuse_unreadable(module)
    with _ONE_AT_A_TIME, unchanged(module), torch.no_grad(), _uncompiled():
        module.eval()
        with Watch(module, _tensors_in((inputs, keywords)), batch) as watch:
            _run(module, inputs, keywords)
    unseen = [*dict.fromkeys([*watch.refused, *_unwatched(module, watch)])]
    if not watch.calls:
        raise ValueError(_nothing_in(module, unseen, was_seen=bool(watch.refused)))
    for sentence in unseen:
        warnings.warn(sentence, CaptureWarning, stacklevel=2)
    records = placed(watch.calls)
    tensors = [*module.parameters(), *_tensors_in((inputs, keywords))]
    device = next((one.device for one in tensors), torch.device("cpu"))
    return Trace.of_attention(
        records, type(module).__name__, words_of(device), tokens, target_tokens, REASON
    )


def _run(module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises the module's own error, or ValueError where its inputs are not what a module usually takes."""
    try:
        module(*inputs, **keywords)
    except Exception as error:
        sentence = _mistaken(type(module).__name__, inputs, keywords)
        if sentence:
            raise ValueError(sentence) from error
        raise


def _mistaken(name: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """What is unusual about inputs that a module could not read."""
    for given in (*inputs, *keywords.values()):
        kind = type(given).__name__
        first = given
        while isinstance(first, list | tuple) and first:
            first = first[0]
        if isinstance(given, Mapping):
            by_name = "Give its tensors by name: capture(module, **inputs)."
            return f"{name} cannot read a {kind} as one input. {by_name}"
        if isinstance(first, str):
            return f"{name} cannot read text. Give the ids that its tokenizer makes of the text, as a tensor."
        if isinstance(given, list | tuple | np.ndarray):
            return f"{name} cannot read a {kind}. Give a tensor: torch.tensor(...)."
    return ""


def _nothing_in(module: nn.Module, unseen: list[str], *, was_seen: bool) -> str:
    name = type(module).__name__
    first = f"No attention in {name} can be recorded."
    if not was_seen:
        first = (
            f"No attention was seen in {name}: no scaled_dot_product_attention, no "
            "nn.MultiheadAttention, and no softmax of queries times keys, times values."
        )
    more = len(unseen) - _TOLD
    rest = [f"So it is in {more} more."] if more > 0 else []
    return " ".join([first, *unseen[:_TOLD], *rest])


def _refuse_unreadable(module: nn.Module) -> None:
    if any(one.is_meta for one in module.parameters()):
        raise ValueError(
            f"{type(module).__name__} has parameters on the meta device: they have no numbers."
        )
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise ValueError(
                f"{name or type(module).__name__} is compiled by TorchScript: its steps cannot be seen. "
                "Capture the module that it was made from."
            )


def _uncompiled() -> AbstractContextManager[object]:
    """Runs what `torch.compile` compiled step by step, `flex_attention` too. PyTorch's compiler takes seconds
    to import: only where somebody did."""
    is_used = {"torch._dynamo", "torch.nn.attention.flex_attention"} & sys.modules.keys()
    return torch.compiler.set_stance("force_eager") if is_used else nullcontext()


def _unwatched(module: nn.Module, watch: Watch) -> Iterator[str]:
    """A sentence for each module that is called attention, of whose inside nothing was recorded."""
    if {type(module).__name__} & watch.reached:
        return
    for name, part in module.named_modules():
        is_attention = name and _ATTENTION.search(type(part).__name__)
        if is_attention and not any(_holds(name, one) for one in watch.reached):
            yield (
                f"{name} ({type(part).__name__}) is called attention, but none was seen in it: it did not "
                "run, or it computes with code that cannot be watched."
            )


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(f"{outer}.") or outer.startswith(f"{inner}.")


def _tensors_in(given: Any) -> list[Tensor]:
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, Mapping):
        given = [*given.values()]
    if isinstance(given, tuple | list):
        return [tensor for one in given for tensor in _tensors_in(one)]
    return []
