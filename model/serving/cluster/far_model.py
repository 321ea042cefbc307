"""A model on the cluster where pages expect one: what it is was told once; what needs its weights is asked
there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NoReturn

import torch
from torch import nn

from model.nn.config import Reasons, TransformerConfig
from model.nn.intervention import UNCHANGED, Intervention
from model.nn.places import Place
from model.run.model import Model
from model.run.tokenizers import GPT2Subset, Tokenizer, Words
from model.serving.engine import Request
from model.system.elsewhere import Elsewhere
from model.trace.trace import Trace

Ask = Callable[[str, Mapping[str, Any]], Any]  # as `Elsewhere.ask`
WHOLE = (GPT2Subset, Words)  # tokenizers that are plain data, and travel
TEXTS_KEPT = 256  # answers of a tokenizer
OF_TOKENIZER = "tokenizer"


@dataclass(frozen=True)
class Size:
    """The shape and the type of a tensor."""

    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Size":
        return cls(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))

    @property
    def tensor(self) -> torch.Tensor:
        """A tensor of this size that holds no numbers."""
        return torch.empty(self.shape, dtype=getattr(torch, self.dtype), device="meta")


@dataclass(frozen=True)
class Description:
    """What a loaded model is."""

    name: str
    config: TransformerConfig
    unproven: Reasons
    unused: tuple[str, ...]
    layers: tuple[tuple[Place, int, int | None], ...]  # sub-layers, their heads and windows
    device: str
    precision: str
    parameter_count: int
    nbytes: int
    extra: Mapping[str, int] | ValueError
    weights: Mapping[str, Size] | ValueError
    tokenizers: tuple[Any, Any]  # of the text and of the target: whole, or what is told of it

    @classmethod
    def of(cls, model: Model, nbytes: int) -> "Description":
        module = model.module
        return cls(
            name=model.name,
            config=model.config,
            unproven=dict(model.unproven),
            unused=model.unused,
            layers=tuple((one.place, one.heads, one.window) for one in module.attentions()),
            device=str(model.device),
            precision=str(model.precision).removeprefix("torch."),
            parameter_count=model.parameter_count,
            nbytes=nbytes,
            extra=_or_refusal(module.extra_parameters),
            weights=_or_refusal(
                lambda: {name: Size.of(one) for name, one in module.named_weights().items()}
            ),
            tokenizers=(_told(model.tokenizer), _told(model.target_tokenizer)),
        )


@dataclass(frozen=True)
class TokenizerTold:
    """What is told of a tokenizer that stays."""

    module: str
    kind: str
    methods: frozenset[str]
    others: frozenset[str]  # names of what it has beside methods
    size: int
    start: int | None
    end: int | None


class FarModel(Model, Elsewhere):
    """The model of a description. ask: the way to it. run: the trace of a request."""

    languages: Mapping[str, int] = MappingProxyType({})  # those of its files are read there

    def __init__(
        self, address: str, told: Description, ask: Ask, run: Callable[[Request], Trace]
    ) -> None:
        self.name, self.address, self._told = told.name, address, told
        self._ask, self._run = ask, run
        self.device = torch.device("cpu")  # of what is computed here
        self.module: Any = FarModule(told)
        self.tokenizer, self.target_tokenizer = (
            _tokenizer(one, target, ask) for target, one in enumerate(told.tokenizers)
        )

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return self._ask(function, given)

    @property
    def config(self) -> TransformerConfig:
        return self._told.config

    @property
    def precision(self) -> torch.dtype:
        found: torch.dtype = getattr(torch, self._told.precision)
        return found

    @property
    def parameter_count(self) -> int:
        return self._told.parameter_count

    def trace(
        self,
        text: str,
        target: str | None = None,
        intervention: Intervention = UNCHANGED,
        *,
        continued: Sequence[int] = (),
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
    ) -> Trace:
        """As `Model.trace`; an explicit pass is not made there."""
        if explicit:
            raise ValueError("A model on the cluster runs with the fused kernel only.")
        full = record == "full"
        return self._run(Request(self.address, text, target, intervention, full, tuple(continued)))

    def on(self, device: torch.device) -> NoReturn:
        raise ValueError("This model runs on the cluster: its owner decides on which device.")

    def reading(self, tokenizer: Tokenizer) -> NoReturn:
        raise ValueError("This model runs on the cluster, with its own tokenizer.")


class FarModule:
    """What is known of the network that runs elsewhere."""

    def __init__(self, told: Description) -> None:
        self._told, self.config, self.unproven = told, told.config, told.unproven
        self.unused = told.unused
        self._layers = tuple(FarLayer(*one) for one in told.layers)

    def attentions(self) -> Sequence["FarLayer"]:
        return self._layers

    def extra_parameters(self) -> dict[str, int]:
        return dict(_told_or_raised(self._told.extra))

    def named_weights(self) -> dict[str, torch.Tensor]:
        """Every weight, without its numbers."""
        return {name: one.tensor for name, one in _told_or_raised(self._told.weights).items()}


@dataclass(frozen=True)
class FarLayer:
    """An attention sub-layer of it."""

    place: Place
    heads: int
    window: int | None

    @property
    def output(self) -> nn.Linear:
        raise ValueError("W_O lies on the cluster.")


class FarTokenizer(Elsewhere):
    """A tokenizer that stays. Whatever is read of it or asked of it is answered there, and kept for a while;
    pages tell kinds of tokenizers apart, so a class below this one is made for each."""

    told: TokenizerTold

    def __init__(self, target: int, told: TokenizerTold, ask: Ask) -> None:
        """target: 1 for the tokenizer of the target."""
        answered = lru_cache(TEXTS_KEPT)(partial(_answer, ask, target))
        vars(self).update(told=told, target=target, _ask=ask, _answered=answered)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("ask", "told", "target"):
            return super().__getattribute__(name)
        told, answered = self.told, self._answered
        if name in ("size", "start", "end"):
            return getattr(told, name)
        if name in told.methods:
            return lambda *given: answered(name, *(_hashable(one) for one in given))
        if name not in told.others:
            raise AttributeError(f"{told.kind} has no {name}")
        return answered(name)

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return vars(self)["_ask"](function, given)


def _answer(ask: Ask, target: int, name: str, *given: object) -> Any:
    return ask(OF_TOKENIZER, {"target": target, "name": name, "given": given})


def _hashable(given: Any) -> Any:
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else given


def _tokenizer(told: Any, target: int, ask: Ask) -> Any:
    """A tokenizer that has travelled, or one that stands for the one that stays."""
    if isinstance(told, WHOLE):
        return told
    kind = getattr(import_module(told.module), told.kind)
    return type(f"Far{told.kind}", (FarTokenizer, kind), {})(target, told, ask)


def of_tokenizer(model: Model, target: int, name: str, given: tuple[Any, ...]) -> Any:
    """What is read of a tokenizer, or asked of it."""
    if name.startswith("_"):
        raise ValueError(f"{name} of a tokenizer is its own.")
    found = getattr((model.tokenizer, model.target_tokenizer)[target], name)
    return found(*given) if callable(found) else found


def _told(tokenizer: Tokenizer) -> Any:
    if isinstance(tokenizer, WHOLE):
        return tokenizer
    kind, ends = type(tokenizer), (tokenizer.start, tokenizer.end)
    methods = frozenset(name for name in dir(kind) if callable(getattr(kind, name)))
    others = frozenset(dir(tokenizer)) - methods
    return TokenizerTold(kind.__module__, kind.__qualname__, methods, others, tokenizer.size, *ends)


def _or_refusal(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ValueError as refusal:
        return refusal


def _told_or_raised(told: Any) -> Mapping[str, Any]:
    if isinstance(told, ValueError):
        raise told
    found: Mapping[str, Any] = told
    return found
