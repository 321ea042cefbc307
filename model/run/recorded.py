"""A recorded run where pages expect a model: what needs no weights is there, the rest says why not.

Views ask a model for many things. Here each of them is known from the run, or refused by `NoWeightsError`,
which a page shows in place of the view; none is made up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, cast

import torch

from model.nn.config import ProvenPart, Reasons, Shape, Stack, TransformerConfig
from model.nn.intervention import UNCHANGED, PassChange, intervention_of
from model.nn.norms import NormPlace
from model.nn.places import Place
from model.nn.positions import PositionKind
from model.nn.stages import in_config
from model.run.inputs import TokenIds
from model.run.model import Model
from model.trace.arrays import Array
from model.trace.records import Token
from model.trace.trace import Trace
from model.trace.unproven import NO_WEIGHTS, NoWeightsError, proven, proven_states

_ABSENT = "It was not recorded."
_NO_SIZES: dict[ProvenPart, str] = {"sizes": "The file does not say what sizes its model has."}


class RecordedModel(Model):
    """The run of a trace file. `name` is that of the model that ran, `address` that of the file, `changed`
    when that was written."""

    runs = False

    def __init__(self, address: str, trace: Trace, changed: int = 0) -> None:
        self.name, self.address, self.changed = trace.model, address, changed
        reasons = missing(trace)
        self.run = trace if trace.unproven == reasons else replace(trace, unproven=reasons)
        self.sizes = sizes_of(trace)
        self.device = torch.device("cpu")
        self.module: Any = RecordedModule(self.sizes, self.run)
        self.tokenizer = self.target_tokenizer = RecordedTokenizer(self.run)

    @property
    def config(self) -> TransformerConfig:
        return self.sizes

    @property
    def precision(self) -> torch.dtype:
        return torch.float32  # of the file

    @property
    def embedding(self) -> Array:
        raise NoWeightsError("see its table of tokens")

    def require_run(self) -> None:
        raise NoWeightsError("change the run or to make another one")

    def tokens(self, text: str | TokenIds) -> tuple[Token, ...]:
        """The recorded tokens. Raises NoWeightsError for any other text."""
        return self.tokenizer.tokens(cast(str, text))

    def truncate(self, text: str) -> str:
        """The recorded text, whatever is asked for: no other one can be read."""
        return self.run.text

    def decoder_prompt(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        raise NoWeightsError("let it write")

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
        """The recorded run. Raises NoWeightsError for any other one.

        Args:
            text: must be the recorded one.
            record: is not read: the run has what was recorded.
        """
        if text != self.run.text:
            raise NoWeightsError("let it read another text")
        if explicit or intervention_of(intervention).changes:
            raise NoWeightsError("change the run")
        if target is not None or continued or cached:
            raise NoWeightsError("let it go on, or read another target")
        return self.run

    def passed(self, *asked: Any, **how: Any) -> NoReturn:
        raise NoWeightsError("run it")

    def generate(self, *asked: Any, **how: Any) -> NoReturn:
        raise NoWeightsError("let it write")

    def on(self, device: torch.device) -> Model:
        return self


class RecordedModule:
    """What is known of the network that ran. Anything else that is asked of it raises NoWeightsError."""

    unused: tuple[str, ...] = ()

    def __init__(self, config: TransformerConfig, trace: Trace) -> None:
        self.config = config
        self.unproven: Reasons = trace.unproven
        self._layers = tuple(
            RecordedLayer(one.place, one.heads, one.window) for one in trace.attention
        )

    def attentions(self) -> Sequence["RecordedLayer"]:
        return self._layers

    def __getattr__(self, name: str) -> NoReturn:
        raise NoWeightsError()


@dataclass(frozen=True)
class RecordedLayer:
    """An attention sub-layer that ran."""

    place: Place
    heads: int
    window: int | None

    @property
    def output(self) -> NoReturn:
        raise NoWeightsError("see what W_O makes of the outputs of its heads")


class RecordedTokenizer:
    """The words that a run has recorded: those of its text, and those of its logits."""

    start: int | None = None
    end: int | None = None

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._size = None if trace.config is None else trace.config.d_vocab
        self._known = {token.id: token for token in (*trace.tokens, *trace.target_tokens)}

    @property
    def size(self) -> int:
        """Raises NoWeightsError where the file does not say how many tokens the vocabulary has."""
        if self._size is None:
            raise NoWeightsError("see its vocabulary")
        return self._size

    @size.setter
    def size(self, tokens: int) -> None:
        raise NoWeightsError

    def tokens(self, text: str) -> tuple[Token, ...]:
        if text != self._trace.text:
            raise NoWeightsError("let it read another text")
        return self._trace.tokens

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Each id with its text; “#7” where that was not recorded."""
        if self._trace.vocabulary is not None:
            return self._trace.vocabulary.named(ids)
        return tuple(self._known.get(id_) or Token(id_, f"#{id_}") for id_ in map(int, ids))

    def decode(self, ids: Sequence[int]) -> str:
        raise NoWeightsError("let it write")

    def new_words(self, text: str) -> tuple[str, ...]:
        return ()

    def beginning(self, text: str, tokens: int) -> str:
        raise NoWeightsError("let it read another text")


def missing(trace: Trace) -> dict[ProvenPart, str]:
    """Why parts are not shown: what was not proven, what was not recorded, and what needs weights."""
    return {**dict(_absent(trace)), **NO_WEIGHTS, **trace.unproven}


def _absent(trace: Trace) -> Iterator[tuple[ProvenPart, str]]:
    """Parts of which the run recorded nothing."""
    if trace.config is None:
        yield from _NO_SIZES.items()
    if any(stack not in proven_states(trace.residual) for stack in trace.stacks):
        yield "stream", _ABSENT
    if any("tokens" not in proven_states(trace.summands).get(stack, {}) for stack in trace.stacks):
        yield "embedding", _ABSENT
    if not proven(trace.norms):
        yield "norms", _ABSENT
    wrote = [name for name in trace.written if Place.named(name).kind == "feed_forward"]
    has_neurons = proven(trace.feed_forward) or trace.experts or wrote
    if not has_neurons and (trace.config is None or trace.config.d_mlp):
        yield "feed_forward", _ABSENT
    if trace.prediction is None and trace.stacks[-1] == "decoder":
        yield "logits", _ABSENT


def sizes_of(trace: Trace) -> TransformerConfig:
    """What the run says of its model. Choices that leave nothing behind in a run have their defaults."""
    if trace.config is not None:
        return trace.config
    attention = trace.attention[0]
    heads = max(one.heads for one in trace.attention)
    groups, width = len(attention.vectors[1]), attention.query.shape[-1]
    stacks = trace.stacks
    shape: Shape = "encoder-decoder" if len(stacks) > 1 else stacks[0]
    norms, records = proven(trace.norms), proven(trace.feed_forward)
    rotary = trace.angles is not None and width % 2 == 0
    return TransformerConfig(
        shape,
        _words(trace),
        max(len(trace.tokens), len(trace.target_tokens)),
        _width(trace),
        heads,
        encoder_layers=_layers(trace, "encoder"),
        decoder_layers=_layers(trace, "decoder"),
        d_mlp=records[0].before.shape[1] if records else 0,
        norm=norms[0].kind if norms else TransformerConfig.norm,
        norm_place=_norm_place(trace),
        positions=_positions(trace, rotary=rotary),
        key_heads=groups if heads % groups == 0 else 0,
        head_size=width,
        **in_config(trace.attention),
    )


def _layers(trace: Trace, stack: Stack) -> int:
    return max((one.layer + 1 for one in trace.attention if one.stack == stack), default=0)


def _words(trace: Trace) -> int:
    """Rows of the vocabulary: as many as there are logits, or as the ids need."""
    if trace.prediction is not None:
        return trace.prediction.vocabulary
    return 1 + max(token.id for token in (*trace.tokens, *trace.target_tokens))


def _width(trace: Trace) -> int:
    for states in proven_states(trace.residual).values():
        return states[0].shape[1]
    heads, _, width = trace.attention[0].output.shape
    return heads * width


def _norm_place(trace: Trace) -> NormPlace:
    """Norms on the stream itself leave none after the last layer."""
    places = [(norm.name, Place.named(norm.name)) for norm in proven(trace.norms)]
    if any(name == place.after for name, place in places):
        reads = any(name == place.norm and place.kind == "self" for name, place in places)
        return "both" if reads else "after"
    return "pre" if not places or any(place.kind == "final" for _, place in places) else "post"


def _positions(trace: Trace, *, rotary: bool) -> PositionKind:
    if rotary:
        return "rotary"
    if any("positions" in parts for parts in proven_states(trace.summands).values()):
        return "learned"
    return "disentangled" if any(one.bias is not None for one in trace.attention) else "none"
