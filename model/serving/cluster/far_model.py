"""A model on the cluster where pages expect one: what it is was told once; what needs its weights is asked
there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn

import torch
from torch import nn

from model.hub.tokenizer import HubTokenizer
from model.nn.config import Reasons, TransformerConfig
from model.nn.intervention import UNCHANGED, PassChange, intervention_of
from model.nn.places import Place
from model.run.inputs import is_several
from model.run.model import Model
from model.run.tokenizers import TEXTS_KEPT, Tokenizer
from model.run.word_cuts import WordCut
from model.serving.cluster.messages import TOKENIZER
from model.serving.engine import Request
from model.system.remote import Remote
from model.trace.records import Token
from model.trace.trace import Trace

Ask = Callable[[str, Mapping[str, Any]], Any]  # as `Remote.ask`


class FarLayer(NamedTuple):
    """An attention sub-layer of it."""

    place: Place
    heads: int
    window: int | None

    @property
    def output(self) -> nn.Linear:
        raise ValueError("W_O lies on the cluster.")


@dataclass(frozen=True, eq=False)
class FarModule:
    """What is known of the network that runs there."""

    config: TransformerConfig
    unproven: Reasons
    unused: tuple[str, ...]
    layers: tuple[FarLayer, ...]
    extra: Mapping[str, int] | ValueError
    shapes: Mapping[str, torch.Tensor] | ValueError  # every weight, without its numbers

    def attentions(self) -> Sequence[FarLayer]:
        return self.layers

    def extra_parameters(self) -> dict[str, int]:
        return dict(_or_raised(self.extra))

    def named_weights(self) -> dict[str, torch.Tensor]:
        return dict(_or_raised(self.shapes))


class ModelDescription(NamedTuple):
    """What a loaded model is."""

    name: str
    module: FarModule
    precision: torch.dtype
    parameter_count: int
    tokenizers: tuple[Tokenizer, Tokenizer]  # of the text and of the target

    @classmethod
    def of(cls, model: Model) -> "ModelDescription":
        whole = model.module
        module = FarModule(
            whole.config,
            dict(whole.unproven),
            whole.unused,
            layers=tuple(FarLayer(one.place, one.heads, one.window) for one in whole.attentions()),
            extra=_or_refusal(whole.extra_parameters),
            shapes=_or_refusal(lambda: _shapes(whole.named_weights())),
        )
        tokenizers = model.tokenizer, model.target_tokenizer
        return cls(model.name, module, model.precision, model.parameter_count, tokenizers)


class FarModel(Model, Remote):
    """The model of a description. ask: the way to it. run: the trace of a request."""

    languages: Mapping[str, int] = MappingProxyType({})  # those of its files are read there
    reference: Any = ("model",)

    def __init__(
        self, address: str, about: ModelDescription, ask: Ask, run: Callable[[Request], Trace]
    ) -> None:
        self.name, self.address, self._about = about.name, address, about
        self._ask, self._run = ask, run
        self.device = torch.device("cpu")  # of what is computed here
        self.module: Any = about.module
        self.tokenizer, self.target_tokenizer = about.tokenizers

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return self._ask(function, given)

    @property
    def precision(self) -> torch.dtype:
        return self._about.precision

    @property
    def parameter_count(self) -> int:
        return self._about.parameter_count

    def trace(
        self,
        text: Any,
        target: str | None = None,
        intervention: PassChange = UNCHANGED,
        *,
        continued: Sequence[int | Token] = (),
        cached: bool = False,
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
    ) -> Any:
        """As `Model.trace`.

        Args:
            target, continued, intervention, record: as there.
            text: a text; a list of texts gives a list of traces. Raises ValueError for ids.
            cached, explicit: raise ValueError: such passes are not made on the cluster.
        """
        if is_several(text):
            return [self.trace(one, target, intervention, record=record) for one in text]
        if not isinstance(text, str):
            raise ValueError("A model on the cluster reads texts, and no token ids.")
        if explicit:
            raise ValueError("A model on the cluster runs with the fused kernel only.")
        if cached:
            raise ValueError("A model on the cluster reads what was written in one pass.")
        written = tuple(one.id if isinstance(one, Token) else one for one in continued)
        change, full = intervention_of(intervention), record == "full"
        return self._run(Request(self.address, text, target, change, full, written))

    def on(self, device: torch.device) -> NoReturn:
        raise ValueError("This model runs on the cluster: its owner decides on which device.")

    def reading(self, tokenizer: Tokenizer) -> NoReturn:
        raise ValueError("This model runs on the cluster, with its own tokenizer.")


class FarTokenizer(HubTokenizer):
    """The tokenizer of a hub model, which stays there; its answers are kept for a while."""

    def __init__(self, ask: Ask, reference: tuple[Any, ...]) -> None:
        """reference: as `reference_of` gives it."""
        _, target, self.size, self.start, self.end, self.template, self.is_unigram = reference
        self._answered = lru_cache(TEXTS_KEPT)(partial(_answer, ask, target))

    def tokens(self, text: str) -> tuple[Token, ...]:
        return tuple(self._answered("tokens", text))

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(self._answered("named", tuple(map(int, ids))))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._answered("decode", tuple(map(int, ids))))

    def new_words(self, text: str) -> tuple[str, ...]:
        return tuple(self._answered("new_words", text))

    def beginning(self, text: str, tokens: int) -> str:
        return str(self._answered("beginning", text, tokens))

    def words_of(self, text: str) -> tuple[str, ...]:
        return tuple(self._answered("words_of", text))

    def word_cut(self, text: str, number: int) -> WordCut:
        cut: WordCut = self._answered("word_cut", text, number)
        return cut

    def wrapped(self, text: str) -> str | None:
        template: str | None = self._answered("wrapped", text)
        return template

    def marked(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        return tuple(self._answered("marked", tuple(tokens)))


OF_TEXTS = {name for name, own in vars(FarTokenizer).items() if callable(own)} - {"__init__"}


def reference_of(tokenizer: HubTokenizer, model: Model) -> tuple[Any, ...]:
    """What stands for one of a model's tokenizers: which one it is, and what is read of it at once."""
    target = (model.tokenizer, model.target_tokenizer).index(tokenizer)
    ends = tokenizer.start, tokenizer.end
    return "tokenizer", target, tokenizer.size, *ends, tokenizer.template, tokenizer.is_unigram


def of_tokenizer(model: Model, target: int, name: str, given: tuple[Any, ...]) -> Any:
    """The answer of a tokenizer about texts or ids.

    Args:
        target: 0: the tokenizer of the text; 1: that of the second text.
        name: of its method, one of `OF_TEXTS`.
        given: the method's arguments.

    Raises ValueError for another name.
    """
    if name not in OF_TEXTS:
        raise ValueError(f"{name} of a tokenizer is its own.")
    return getattr((model.tokenizer, model.target_tokenizer)[target], name)(*given)


def _answer(ask: Ask, target: int, name: str, *given: object) -> Any:
    return ask(TOKENIZER, {"target": target, "name": name, "given": given})


def _shapes(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: torch.empty_like(weight, device="meta") for name, weight in weights.items()}


def _or_refusal(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ValueError as refusal:
        return refusal


def _or_raised(about: Any) -> Any:
    if isinstance(about, ValueError):
        raise about
    return about
