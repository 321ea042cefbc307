"""A model of Hugging Face's library that somebody has already loaded, as one of ours.

It is never changed: a twin of its modules, which has the same weights in memory, is proven and run.
"""

import threading
import weakref
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from model.hub.config import shape_of
from model.hub.layer_by_layer import in_float32
from model.hub.library import missing_library
from model.hub.loading import check_rounding
from model.hub.probe import near
from model.hub.proving import Candidate, candidate_of, prove
from model.hub.tokenizer import isolated
from model.hub.twin import check_weights, twin, weights_changed
from model.nn.config import Shape
from model.nn.intervention import UNCHANGED, Intervention
from model.run.inputs import TokenIds, row_of_ids
from model.run.model import Model
from model.run.protocols import cannot_be_shown
from model.system.border import at_border
from model.system.memory import enough_memory
from model.trace.trace import Trace

_SPREADS = (nn.DataParallel, nn.parallel.DistributedDataParallel)  # their forward adds nothing


@partial(at_border, besides=("text",))
def trace(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase | None,
    text: str | TokenIds,
    *,
    target: str | None = None,
    intervention: Intervention = UNCHANGED,
    record: Literal["attention", "full"] = "attention",
    explicit: bool = False,
) -> Trace:
    """One pass of a loaded model over a text, or over ids, and everything it leaves behind.

    Args:
        model: as in `opened`.
        tokenizer: the library's own, fast or slow; None where ids are given.
        target, intervention, record, explicit: as in `Model.trace`.

    Raises ValueError, with a sentence, for a model that cannot be shown truly, and for what it cannot read.

    >>> import transformers
    >>> from model.loading.in_memory import trace
    >>> config = transformers.GPT2Config(
    ...     vocab_size=50, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    ... )
    >>> trace(transformers.GPT2LMHeadModel(config).eval(), None, [3, 1, 4, 1, 5])
    <Trace of GPT2LMHeadModel: 5 tokens, 2 attention layers>
    """
    ids = text if isinstance(text, str) else row_of_ids(text)
    ours = opened(model, tokenizer)
    return ours.trace(ids, target, intervention, record=record, explicit=explicit)


@at_border
def opened(model: nn.Module, tokenizer: PreTrainedTokenizerBase | None) -> Model:
    """A loaded model as one of ours, for several texts. Its attention is proven once, and again after its
    weights or its parts were changed, but for changes through `.data`, which PyTorch does not count; what
    was proven is forgotten with the model.

    Its weights are used where they are. Nothing of it is changed, and its own hooks run as in every pass.
    Raises ValueError, with a sentence, for one that cannot be shown truly.

    >>> import transformers
    >>> from model.loading.in_memory import opened
    >>> config = transformers.GPT2Config(
    ...     vocab_size=50, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    ... )
    >>> opened(transformers.GPT2LMHeadModel(config).eval(), None).trace("3 1 4 1 5")
    <Trace of GPT2LMHeadModel: 5 tokens, 2 attention layers>
    """
    return _PROVEN.of(model, tokenizer)


@dataclass(frozen=True, eq=False)
class _Known:
    """A proven model, and what it was proven for."""

    state: tuple[object, ...]
    tokenizer: "weakref.ref[Any] | None"
    tokens: int
    model: Model

    def is_of(self, state: tuple[object, ...], tokenizer: Any) -> bool:
        if tokenizer is None or self.tokenizer is None:
            return state == self.state and tokenizer is self.tokenizer
        same = tokenizer is self.tokenizer() and self.tokens == len(tokenizer or ())
        return same and state == self.state


class _Proven:
    """The last proof of each model that is still in use."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[nn.Module, _Known] = weakref.WeakKeyDictionary()
        self._alone = threading.Lock()

    def of(self, model: nn.Module, tokenizer: Any) -> Model:
        state = weights_changed(model)
        with self._alone:
            known = self._known.get(model)
        if known is not None and known.is_of(state, tokenizer):
            return known.model
        with enough_memory("the check of this model"):
            ours = _prove(model, tokenizer)
        reference = None if tokenizer is None else weakref.ref(tokenizer)
        tokens = 0 if tokenizer is None else len(tokenizer)
        with self._alone:
            self._known[model] = _Known(state, reference, tokens, ours)
        return ours


_PROVEN = _Proven()


def _prove(model: nn.Module, tokenizer: Any) -> Model:
    name, hint = type(model).__name__, ""
    try:
        if missing := missing_library():
            raise ValueError(f"it needs {missing}")
        loaded, around = _unwrapped(model)
        name = loaded.name_or_path or name
        check_weights(loaded)
        hint = " `capture(model, …)` may record its attention alone."
        shape = _shape(loaded)
        body = twin(_with_states(loaded, shape))
        reads = None if tokenizer is None else isolated(tokenizer)
        is_single = all(weight.dtype == torch.float32 for weight in body.parameters())
        candidate, tokenizers = candidate_of(name, body, shape, reads)
        if around is not None:
            _check_same(around, candidate)
        with nullcontext() if is_single else in_float32(body):
            ours, reference = prove(candidate, *tokenizers, borrowed=True)
        if not is_single:
            check_rounding(ours, candidate, reference)
    except ValueError as refusal:
        raise ValueError(f"{cannot_be_shown(name, refusal)}{hint}") from refusal
    return ours


def _unwrapped(model: Any) -> tuple[PreTrainedModel, Any]:
    """The library's model inside what compiles, distributes or adapts it; and what is around it, if that may
    compute something else."""
    while True:
        inner = getattr(model, "_orig_mod", None)  # of torch.compile
        if inner is None and isinstance(model, _SPREADS):
            inner = model.module
        if inner is None or model._forward_hooks or model._forward_pre_hooks:
            break
        model = inner
    around = model
    model = getattr(model, "module", model)
    if not isinstance(model, PreTrainedModel) and hasattr(model, "get_base_model"):  # of PEFT
        model = model.get_base_model()
    if not isinstance(model, PreTrainedModel):
        raise ValueError(
            "it is not a model of Hugging Face's library; `capture` records the attention of other modules"
        )
    computes = model is not around and type(around).forward is not nn.Module.forward
    return model, around if computes else None


def _check_same(around: nn.Module, candidate: Candidate) -> None:
    """Raises ValueError where a wrapper gives something else than the model inside it on the test text, for
    tokens that it puts in front (prompt tuning), or keys and values of its own (prefix tuning)."""
    whole = twin(around)  # evaluated, whatever its owner does with it
    fed = {"input_ids": candidate.source}
    if candidate.target is not None:
        fed["decoder_input_ids"] = candidate.target
    try:
        with torch.inference_mode():
            given, expected = (_first(one(**fed)) for one in (whole, _unwrapped(whole)[0]))
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"what {type(around).__name__} adds to the model inside it cannot be compared: it does not run "
            "on ids alone"
        ) from error
    if given.shape != expected.shape or not near(given, expected):
        raise ValueError(
            f"{type(around).__name__} gives other numbers than the model inside it, so what it adds would be "
            "lost"
        )


def _first(gave: Any) -> Tensor:
    tensor: Tensor = gave if isinstance(gave, Tensor) else gave[0]
    return tensor


def _shape(model: PreTrainedModel) -> Shape:
    """Which of the three shapes a model has. Raises ValueError for one that does not read text."""
    described = deepcopy(model.config)
    described.architectures = [kind.__name__ for kind in type(model).__mro__]
    return shape_of(described)


def _with_states(model: PreTrainedModel, shape: Shape) -> nn.Module:
    """The part of a model that is shown: without a head, unless it is one that predicts tokens."""
    predicts = shape != "encoder" and model.get_output_embeddings() is not None
    body: nn.Module = model if predicts else model.base_model
    return body
