"""`capture`: one pass of anybody's own module, as a Trace, with stack, layer and name of each call of
attention."""

import copy
import re
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.capture.change import Call, CallChange, changes_of
from model.capture.generation import joined_passes, words_of_generation
from model.capture.watch import Watch, WatchedCall, unchanged
from model.nn.config import ProvenPart, Stack
from model.nn.intervention import UNCHANGED, Intervention
from model.nn.places import Place
from model.system.border import at_border
from model.trace.arrays import read_only
from model.trace.collect import words_of
from model.trace.given import GivenTokens
from model.trace.records import Attention
from model.trace.trace import Logits, Trace


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
ABSENT = "It was captured from a module, and this was not found in the pass."
EARLIER = (
    "Its first tokens were read before, into a cache: of them this pass has keys and values alone."
)
Inputs = tuple[tuple[Any, ...], dict[str, Any]]  # of a call
_ATTENTION = re.compile(r"attention|attn|mha", re.IGNORECASE)
_TOLD = 3  # modules that a refusal names
_ONE_AT_A_TIME = threading.Lock()  # a pass turns dropout off and puts back what the module wrote


class CaptureWarning(UserWarning):
    """Some attention of a module was not recorded; the sentence names it.

    >>> import warnings
    >>> from model.capture import CaptureWarning
    >>> warnings.simplefilter("error", CaptureWarning)  # what is not recorded stops the script
    """


@at_border
def capture(
    module: nn.Module | Callable[..., Any],
    *inputs: Any,
    tokens: GivenTokens | Callable[[list[int]], GivenTokens] | None = None,
    target_tokens: GivenTokens | None = None,
    batch: int = 0,
    intervention: Intervention = UNCHANGED,
    **keywords: Any,
) -> Trace:
    """Runs a module once, `module(*inputs, **keywords)`, and records all its attention, and its logits where
    it gives some for each token of its vocabulary.

    It runs without dropout and without gradients, as after `module.eval()`; afterwards the module is as it
    was before, its training flags, buffers and attributes included. Seen are PyTorch's
    `scaled_dot_product_attention`, `nn.MultiheadAttention` and what is built of it, and softmax(QKᵀ)V
    written by hand. Each record is held against the module's own weights and output.

    A method of a module that writes, as `capture(module.generate, ids, max_new_tokens=20)`, gives one trace
    of all its passes: with a cache each reads what is new, and the rows of all are joined and held against
    what the module computed. It has a row for each token that was read: the last written one was not.

    Args:
        module: that runs; or a method of one, which calls it once for each token.
        tokens: the words or ids of the text, to name rows and columns; None: the numbers of the positions. Of
            a generation the ids are the names, or what a function makes of them, such as a tokenizer's
            `convert_ids_to_tokens`.
        target_tokens: those of the second text, where there is cross-attention.
        batch: which text of a batch; of a module that reads in parts, which part, as `doubt` says.
        intervention: of a second pass, which is recorded; both read copies of the inputs, so a cache stays as
            it was (else it grows). Changed are `ablated` heads, and in `scaled_dot_product_attention` also
            `mask` and `scale`, within `only`; attention is named as in the trace or by its module.

    Warns (CaptureWarning) of attention that is not recorded. Raises ValueError where none is, and for what
    cannot be changed, and says why. An error of the module itself is raised as it is.

    >>> import torch
    >>> from model.capture import capture
    >>> module = torch.nn.MultiheadAttention(32, 4, batch_first=True)
    >>> x = torch.randn(1, 5, 32)  # (batch, token, width)
    >>> trace = capture(module, x, x, x, tokens=["a", "b", "c", "d", "e"])
    >>> trace.attention[0].weights(0).shape, trace.check() < 1e-5
    ((5, 5), True)
    """
    run, module = module, getattr(module, "__self__", module)
    if not isinstance(module, nn.Module):
        raise ValueError(f"capture wants a torch.nn.Module, not {type(module).__name__}.")
    if batch < 0:
        raise ValueError(f"batch is {batch}; texts of a batch are counted from 0.")
    with _ONE_AT_A_TIME, torch.no_grad(), _uncompiled():
        _refuse_unreadable(module)
        given: Inputs = inputs, keywords
        if run is not module:
            if intervention != UNCHANGED:
                raise ValueError(
                    "A generation is captured as it is: a changed one may write another text."
                )
            return _generation(module, run, given, tokens, target_tokens, batch)
        if callable(tokens):
            raise ValueError(
                "Names are made of the ids of a generation alone: give the words of this text."
            )
        return _captured(module, given, tokens, target_tokens, batch, intervention)


def _generation(
    module: nn.Module,
    run: Callable[..., Any],
    given: Inputs,
    tokens: GivenTokens | Callable[[list[int]], GivenTokens] | None,
    target_tokens: GivenTokens | None,
    batch: int,
) -> Trace:
    """The attention of all passes of a method that writes, as `capture` names its arguments."""
    watch, _ = _watched(module, run, given, batch)
    watch.calls = joined_passes(watch.calls)
    records, tensors = _placed_or_refused(module, watch), _tensors_in(given)
    text, target = words_of_generation(tokens, tensors, watch.passes, batch, records)
    name, device = type(module).__name__, words_of(_device_of(module, given))
    return Trace.of_attention(records, name, device, text, target_tokens or target, REASON)


def _captured(
    module: nn.Module,
    given: Inputs,
    tokens: GivenTokens | None,
    target_tokens: GivenTokens | None,
    batch: int,
    intervention: Intervention,
) -> Trace:
    """One pass, as `capture` names its arguments."""
    # A second pass does not read what the first one wrote, as into a cache.
    passes = [given] if intervention == UNCHANGED else [_copied(given), _copied(given)]
    watch, output = _watched(module, module, passes[0], batch)
    records = _placed_or_refused(module, watch)
    if intervention != UNCHANGED:
        changes = changes_of(intervention, records, [call.call for call in watch.calls])
        watch, output = _watched(module, module, passes[1], batch, changes)
        records = _as_changed(records, watch, changes)
        intervention = _by_place(intervention, records)
    name, device = type(module).__name__, words_of(_device_of(module, given))
    trace = Trace.of_attention(records, name, device, tokens, target_tokens, REASON)
    logits = logits_of(module, output, watch, len(trace.tokens_of(trace.stacks[-1])), batch)
    stacks: tuple[Stack, ...] = ("encoder", "decoder")
    counts = {stack: len(trace.tokens_of(stack)) for stack in stacks}
    around = watch.notes.surroundings(records, [call.output for call in watch.calls], counts)
    found: dict[ProvenPart, object] = {
        "logits": logits,
        "norms": around.norms,
        "stream": around.residual,
        "feed_forward": around.feed_forward,
    }
    absent = [part for part in trace.unproven if not found.get(part)]
    reason = REASON if len(absent) == len(trace.unproven) else ABSENT
    if any(one.kind == "causal" and one.sizes[1] < one.sizes[2] for one in records):
        reason = EARLIER
    return replace(
        trace,
        intervention=intervention,
        prediction=logits,
        norms=around.norms,
        residual=around.residual,
        feed_forward=around.feed_forward,
        unproven=dict.fromkeys(absent, reason),
    )


def _device_of(module: nn.Module, given: Inputs) -> torch.device:
    tensors = [*module.parameters(), *_tensors_in(given)]
    return next((one.device for one in tensors), torch.device("cpu"))


def _watched(
    module: nn.Module,
    run: Callable[..., Any],
    given: Inputs,
    batch: int,
    changes: Mapping[Call, CallChange] | None = None,
) -> tuple[Watch, Any]:
    """One pass: what was seen, and what the module returned."""
    with unchanged(module):
        module.eval()
        with Watch(module, _tensors_in(given), batch, changes, writes=run is not module) as watch:
            output = _run(module, run, *given)
    return watch, output


def _copied(given: Inputs) -> Inputs:
    """Inputs that a pass may write into. Raises ValueError where they cannot be copied."""
    same = {id(one): one.detach().clone() for one in _tensors_in(given)}
    try:
        copied: Inputs = copy.deepcopy(given, same)
        return copied
    except (TypeError, RuntimeError) as error:
        raise ValueError(
            "A changed pass is the second one, and these inputs cannot be copied for it. Make a cache under "
            "torch.no_grad(), and give lists for what can be read only once."
        ) from error


def _placed_or_refused(module: nn.Module, watch: Watch) -> tuple[Attention, ...]:
    """The records of a pass; warns of attention without one. Raises ValueError where there are none."""
    unseen = [*dict.fromkeys([*watch.refused, *_unwatched(module, watch)])]
    if not watch.calls:
        name = type(module).__name__
        first = f"No attention in {name} can be recorded."
        if not watch.refused:
            first = (
                f"No attention was seen in {name}: no scaled_dot_product_attention, no "
                "nn.MultiheadAttention, and no softmax of queries times keys, times values."
            )
        more = len(unseen) - _TOLD
        rest = [f"So it is in {more} more."] if more > 0 else []
        raise ValueError(" ".join([first, *unseen[:_TOLD], *rest]))
    for sentence in unseen:
        warnings.warn(sentence, CaptureWarning, stacklevel=3)
    return placed(watch.calls)


def _as_changed(
    plain: tuple[Attention, ...], watch: Watch, changes: Mapping[Call, CallChange]
) -> tuple[Attention, ...]:
    """The records of the changed pass, in the places that they have in the unchanged one. Raises ValueError
    where others were seen."""
    if len(plain) != len(watch.calls):
        why = watch.refused[-1] if watch.refused else "Other attention ran."
        raise ValueError(f"The changed pass could not be recorded. {why}")
    left_out = {call: change.ablated for call, change in changes.items()}
    return tuple(
        replace(
            call.record,
            place=one.place,
            ablated=left_out.get(call.call, ()) if call.call is not None else (),
        )
        for one, call in zip(plain, watch.calls, strict=True)
    )


def _by_place(intervention: Intervention, records: tuple[Attention, ...]) -> Intervention:
    """The same with attention named by its place, as in other traces."""
    names = {name: one.name for one in records for name in (one.name, one.module)}
    only = intervention.only
    return replace(
        intervention,
        ablated=frozenset((names[name], head) for name, head in intervention.ablated),
        only=None if only is None else frozenset(names[name] for name in only),
    )


def logits_of(
    module: nn.Module, output: Any, watch: Watch, tokens: int, batch: int
) -> Logits | None:
    """The logits among what a module returned: its `logits`, or the first of what it returns.

    They are taken for logits only where each of the tokens has as many numbers as an embedding table of the
    module has rows, and a linear map of the pass made them: else None.

    Args:
        output: all that the module returned.
        watch: of the pass.
        tokens: how many the last stack reads.
        batch: which text of a batch.
    """
    given = output[0] if isinstance(output, tuple | list) and output else output
    given = output.get("logits", given) if isinstance(output, Mapping) else given
    given = getattr(output, "logits", given)
    if not (isinstance(given, Tensor) and given.is_floating_point() and given.ndim == 3):
        return None
    size = given.shape[2]
    tables = [one for one in module.modules() if isinstance(one, nn.Embedding)]
    is_vocabulary = any(one.num_embeddings == size for one in tables)
    is_width = any(one.embedding_dim == size for one in tables)
    marks = watch.lineage(given).marks.items()
    made = any(axis.kind == "feature" and mark.shape[-1] == size for axis, mark in marks)
    fits = given.shape[1] == tokens and batch < len(given) and bool(given[batch].isfinite().all())
    if not (is_vocabulary and made and fits) or is_width:
        return None
    return Logits.of(read_only(given[batch].detach().to("cpu", torch.float32, copy=True).numpy()))


def _run(
    module: nn.Module, run: Callable[..., Any], inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Raises the module's own error, or ValueError where its inputs are not what a module usually takes."""
    try:
        return run(*inputs, **keywords)
    except Exception as error:
        named = keywords if run is module else {}  # of a generation they are many things
        sentence = _mistaken(type(module).__name__, inputs, named)
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
