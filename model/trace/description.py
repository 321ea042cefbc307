"""The content of a trace file: its description, JSON of known keys and bounds, and the arrays it asks for."""

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator

from model.nn.config import AS_IN_GPT2, Projection, ProvenPart, Stack, TransformerConfig
from model.nn.intervention import LARGEST_MASK_VALUE, LARGEST_SCALE, SMALLEST, Intervention
from model.nn.norms import NormKind
from model.nn.places import Place
from model.nn.stages import SCORE_STAGES, STAGES
from model.nn.steering import Steering
from model.system.files import whole_file
from model.system.foreign import strict_json, validated
from model.system.settings import settings
from model.system.version import PRODUCT
from model.trace import array_file
from model.trace.array_file import Stored
from model.trace.partial import PartialAttention
from model.trace.records import Attention, Token
from model.trace.unproven import NO_WEIGHTS, proven, proven_states

FORMAT, VERSION = "attention-visualizer trace", 2
LARGEST = 1e12  # of any number in a file: products of two stay within single precision
ShortText = Annotated[str, Field(max_length=1_000)]
PlaceName = Annotated[str, Field(max_length=60)]
Count = Annotated[int, Field(ge=0, le=10_000_000)]
PositiveCount = Annotated[int, Field(ge=1, le=10_000_000)]
Few = Field(max_length=10_000)  # parts of a kind
LayerNumber = Annotated[int, Field(ge=0, lt=10_000)]
Heads = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class StrictEntry(BaseModel):
    """A part of the description: no unknown keys, no other types, no infinity."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, val_json_bytes="hex"
    )


def _bounded_token(token: Token) -> Token:
    if not (0 <= token.id < 2**31 and len(token.text) <= 1_000 and len(token.raw) <= 1_000):
        raise ValueError("it has more letters than a token has, or a number that none has")
    begin, end = token.span or (0, 0)
    if not 0 <= begin <= end <= 10_000_000:
        raise ValueError("it ends before it begins, or before the text")
    return token


FileToken = Annotated[Token, AfterValidator(_bounded_token)]


def mask_value(written: str) -> float:
    """What a masked score became. Raises ValueError for what no pass can put there."""
    value = float(written)
    if value != -math.inf and not abs(value) <= LARGEST_MASK_VALUE:
        raise ValueError("the mask puts in something that is neither minus infinity nor a number")
    return value


MaskValue = Annotated[PlaceName, AfterValidator(mask_value)]  # JSON has no infinity


class PlacedEntry(StrictEntry):
    """An attention sub-layer of a file."""

    name: PlaceName
    kind: Literal["self", "causal", "cross"]
    stack: Stack
    layer: LayerNumber
    module: ShortText = ""  # in the network that it was captured from
    heads: Heads

    @property
    def place(self) -> Place:
        """Raises ValueError where its name is another."""
        place = Place(self.stack, self.layer, self.kind, self.module)
        if place.name != self.name:
            raise ValueError(f"an attention sub-layer of {place.name} is named otherwise")
        return place


class AttentionEntry(PlacedEntry):
    """One of a trace, without its arrays."""

    doubt: ShortText = ""  # what is not certain of it
    scale: Annotated[float, Field(ge=-LARGEST_SCALE, le=LARGEST_SCALE)]
    fill: MaskValue  # what a masked score became
    look_ahead: bool
    cap: Annotated[float, Field(ge=SMALLEST, le=LARGEST)] | None = None
    window: PositiveCount | None = None
    ablated: tuple[Count, ...] = ()
    weights_set: tuple[tuple[Count, Count, Count, Share], ...] = ()
    steps: tuple[PlaceName, ...] = ()
    projection: Projection = AS_IN_GPT2


class NormEntry(StrictEntry):
    name: PlaceName
    kind: NormKind
    epsilon: Annotated[float, Field(ge=0, le=1)]


def _steering(written: object) -> object:
    """A direction from its numbers. Raises ValueError for anything else."""
    match written:
        case {"toward": [*toward], "place": str(place), "multiple": float(multiple), **others}:
            if not others and len(place) <= 60 and all(type(one) is float for one in toward):
                return Steering(np.array(toward, np.float32), place, multiple)
    raise ValueError("its steering is no direction, place and multiple")


@dataclass(frozen=True, repr=False)
class WrittenIntervention(Intervention):
    """An intervention in a file: its mask value is a text."""

    fill: MaskValue = -math.inf  # type: ignore[assignment]
    steering: Annotated[Steering, PlainValidator(_steering)] | None = None

    def read(self) -> Intervention:
        """Raises ValueError for a name or a number beyond those of any model."""
        given = {one.name: getattr(self, one.name) for one in fields(Intervention)}
        patch, cells = self.patch, (*self.ablated, *self.weights, *self.stream)
        parts = patch.parts if patch else ()
        for member in chain(
            self.hidden, self.only or (), [self.window or 0], *self.blocked, *parts, *cells
        ):
            wrong = isinstance(member, int) and not 0 <= member <= 10_000_000
            if wrong or (isinstance(member, str) and len(member) > 60):
                raise ValueError(f"its intervention is at {str(member)[:70]}, which no model has")
        if not 0 <= self.seed <= 2**63 or (patch and len(patch.model) > 1_000):
            raise ValueError("its intervention has a seed or a model that is none")
        return Intervention(**given)


class Description(StrictEntry):
    """All that a file says beside its arrays. `version` 1 lacks what has a default."""

    format: Literal["attention-visualizer trace"]
    version: Literal[1, 2]
    written_by: ShortText = ""
    model: ShortText
    text: str
    device: ShortText = ""
    config: TransformerConfig | None = None
    intervention: WrittenIntervention
    tokens: tuple[FileToken, ...]
    target_tokens: tuple[FileToken, ...]
    attention: Annotated[tuple[AttentionEntry, ...], Few]
    norms: Annotated[tuple[NormEntry, ...], Few]
    feed_forward: Annotated[tuple[PlaceName, ...], Few]
    experts: Annotated[tuple[PlaceName, ...], Few] = ()
    written: Annotated[tuple[PlaceName, ...], Few] = ()
    states: dict[Stack, PositiveCount]
    summands: dict[Stack, tuple[Literal["tokens", "positions", "segments"], ...]]
    unproven: dict[ProvenPart, ShortText] = {}
    same: dict[ShortText, ShortText]

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks that ran, in order."""
        return tuple(dict.fromkeys(entry.stack for entry in self.attention))

    def tokens_of(self, stack: Stack) -> int:
        """How many tokens a stack reads."""
        reads_target = self.target_tokens and stack == "decoder"
        return len(self.target_tokens if reads_target else self.tokens)


def described(text: str) -> Description:
    """The description that a JSON text holds. Raises ValueError, in a clause, for anything else."""
    strict_json(text)
    found = validated(Description, text)
    _check(found)
    return found


def _check(found: Description) -> None:
    """Raises ValueError where parts of a description do not fit together."""
    longest = settings().longest_text
    if len(found.text) > longest:
        raise ValueError(f"its text is longer than {longest:,} characters")
    if not (found.tokens and found.attention):
        raise ValueError("it has no tokens or no attention")
    if any(token.span and token.span[1] > len(found.text) for token in found.tokens):
        raise ValueError("a token stands behind the end of the text")
    for listed in (
        [entry.name for entry in found.attention],
        [entry.name for entry in found.norms],
        found.feed_forward,
        found.experts,
        found.written,
    ):
        if len(set(listed)) < len(listed):
            raise ValueError("it lists something twice")
        for name in listed:
            Place.named(name)
    for entry in found.attention:
        _ = entry.place
        if 0 < abs(entry.scale) < SMALLEST:
            raise ValueError(f"{entry.name} multiplies by less than single precision holds")
        if any(head >= entry.heads for head in entry.ablated):
            raise ValueError(f"{entry.name} leaves out a head that it does not have")
    if found.config is not None:
        # Raises ValueError for sizes that are not those of the pass: pages draw as many layers as
        # they say.
        config = found.config
        layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
        for entry in found.attention:
            if entry.layer >= layers[entry.stack]:
                raise ValueError("its sizes are of a model with fewer layers")
        ran = {entry.stack for entry in found.attention}
        if max(layers.values()) > 10_000 or {stack for stack in layers if layers[stack]} != ran:
            raise ValueError("its sizes are of a model with other stacks")
        if max(config.d_model, config.d_vocab, config.n_ctx, config.d_mlp, config.heads) > 10**8:
            raise ValueError("its sizes are those of no model")


# What numbers an array may hold. "lowered": also minus infinity, and what stands for it in single precision.
NumberKind = Literal["any", "finite", "lowered", "positive", "counts"]


class FileArray(NamedTuple):
    """An array of a record, by its name in a file.

    axes: names of sizes, or numbers; “1|heads”: one of both; “/heads”: it divides heads; “heads?”: it may be
    absent. A size that is not told where the array is taken is the same for all arrays of the record.
    """

    axes: str
    numbers: NumberKind = "finite"
    kind: str = "F32"
    required: bool = True
    field: str = ""  # of the record, where it is named otherwise


_SCORE_STEPS = (stage.name for stage in SCORE_STAGES)
_CELLS = FileArray("heads queries keys")
VECTORS = ("query", "key", "value")
ARRAYS: Mapping[str, Mapping[str, FileArray]] = {
    "attention": {
        "query": FileArray("heads queries d_k"),
        "key": FileArray("/heads keys d_k"),
        "value": FileArray("/heads keys d_v"),
        "output": FileArray("heads queries d_v"),
        "mask": FileArray("heads? queries keys", "any", "BOOL", required=False, field="own_mask"),
        "bias": FileArray("1|heads 1|queries keys", "lowered", required=False),
        "sinks": FileArray("heads", required=False),
    },
    "steps": {
        **dict.fromkeys(("scores", "weights", "dropped", *_SCORE_STEPS), _CELLS),
        **dict.fromkeys(("biased", "masked"), _CELLS._replace(numbers="lowered")),
        "sink_weights": FileArray("heads queries"),
    },
    "norms": {
        "input": FileArray("tokens width"),
        "mean": FileArray("tokens"),
        "inverse_deviation": FileArray("tokens", "positive"),
        **dict.fromkeys(("gamma", "beta"), FileArray("width")),
        "output": FileArray("tokens width", required=False, field="recorded"),
    },
    "feed_forward": dict.fromkeys(("before", "hidden"), FileArray("tokens d_mlp")),
    "experts": {
        "logits": FileArray("tokens experts", "lowered"),
        "weights": FileArray("tokens chosen"),
        "chosen": FileArray("tokens chosen", "counts", "I64"),
    },
    "vocabulary": {
        "text": FileArray("letters", "any", "U8"),
        "ends": FileArray("named", "counts", "I64"),
        "special": FileArray("named", "any", "BOOL"),
    },
}
_STATE, _SUMMAND = FileArray("tokens d_model"), FileArray("1|tokens d_model")
_LOGITS = FileArray("tokens vocabulary", "lowered")


class Wanted:
    """Takes arrays out of those that a file has. `numbers` says what each of them may hold."""

    def __init__(self, stored: Mapping[str, Stored], same: Mapping[str, str]) -> None:
        self.numbers: dict[str, set[NumberKind]] = {}
        self._stored, self._same = stored, same
        self._left = {*stored, *same}
        self._sizes: dict[str, int] = {}
        if any(name in stored or other not in stored for name, other in same.items()):
            raise ValueError("it lists an array that is the same as none")

    def has(self, name: str) -> bool:
        return name in self._stored or name in self._same

    def take(self, place: str, arrays: Mapping[str, FileArray], **sizes: int) -> None:
        """Takes the arrays of a record; those that are not required only where they are there.

        Args:
            place: stands before their names.
            sizes: of axes, by name.

        Raises ValueError where one is missing, or has another kind or shape.
        """
        for short, wanted in arrays.items():
            name = f"{place}{short}"
            if not self.has(name):
                if wanted.required:
                    raise ValueError(f"the array {name} is missing")
                continue
            stored = self._stored[at := self._same.get(name, name)]
            if stored.kind != wanted.kind or 0 in stored.shape:
                raise ValueError(f"the array {name} holds other numbers than {wanted.kind}")
            first, *rest = wanted.axes.split()
            absent = first.endswith("?") and len(stored.shape) == len(rest)
            axes = rest if absent else [first.removesuffix("?"), *rest]
            fit = (self._fits(*one, place, sizes) for one in zip(stored.shape, axes, strict=False))
            if len(stored.shape) != len(axes) or not all(fit):
                raise ValueError(f"the array {name} does not fit with its shape {stored.shape}")
            self._left.discard(name)
            self.numbers.setdefault(at, set()).add(wanted.numbers)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._stored[self._same.get(name, name)].shape

    def refuse_others(self) -> None:
        """Raises ValueError for arrays that nothing has asked for."""
        if self._left:
            raise ValueError(f"it has an array that no trace has: {min(self._left)}")

    def _fits(self, size: int, axis: str, place: str, sizes: Mapping[str, int]) -> bool:
        if "|" in axis:
            return any(self._fits(size, one, place, sizes) for one in axis.split("|"))
        if axis.startswith("/"):
            return sizes[axis[1:]] % size == 0
        known = sizes.get(axis, int(axis) if axis.isdigit() else None)
        if known is None:
            shared = axis if axis == "d_model" else f"{axis} of {place}"
            known = self._sizes.setdefault(shared, size)
        return size == known


def fitted(said: Description, stored: Mapping[str, Stored]) -> Wanted:
    """The arrays of a description. Raises ValueError, in a clause, where those of a file are others."""
    wanted = Wanted(stored, said.same)
    for stack, count in said.states.items():
        for number in range(count):
            wanted.take(f"states/{stack}/", {str(number): _STATE}, **_tokens(said, stack))
    for stack, parts in said.summands.items():
        wanted.take(f"summands/{stack}/", dict.fromkeys(parts, _SUMMAND), **_tokens(said, stack))
    lengths = "|".join(str(said.tokens_of(stack)) for stack in said.stacks)
    wanted.take("", {"angles": FileArray(f"{lengths} pairs", required=False)})
    for entry in said.attention:
        _attention(wanted, said, entry)
    read = {
        wanted.shape(f"attention/{entry.name}/{vectors}")[1]
        for entry in said.attention
        for vectors in ("query", "key")
    }
    if any(len(tokens) not in read for tokens in (said.tokens, said.target_tokens) if tokens):
        raise ValueError("it has more or fewer tokens than its attention reads")  # pages draw them
    norms = tuple(one.name for one in said.norms)
    named = ("norms", norms), ("feed_forward", said.feed_forward), ("experts", said.experts)
    for kind, names in named:
        for name in names:
            wanted.take(f"{kind}/{name}/", ARRAYS[kind], **_tokens(said, _stack(name)))
    for name in said.written:
        wanted.take("written/", {name: _STATE}, **_tokens(said, _stack(name)))
    if wanted.has("logits"):  # else an array of a vocabulary is one too many
        wanted.take("", {"logits": _LOGITS}, **_tokens(said, said.stacks[-1]))
        if wanted.has("vocabulary/ends"):
            wanted.take("vocabulary/", ARRAYS["vocabulary"])
            if wanted.shape("vocabulary/ends") > wanted.shape("logits")[1:]:
                raise ValueError("it names more tokens than it has logits of")
    wanted.refuse_others()
    return wanted


def holds(array: NDArray[Any], numbers: NumberKind) -> bool:
    """Whether an array holds only such numbers."""
    match numbers:
        case "finite":
            return bool((np.abs(array) <= LARGEST).all())  # false for what is no number
        case "lowered":
            return bool((array <= LARGEST).all())
        case "positive":
            return bool(((array > 0) & (array <= LARGEST)).all())
        case "counts":
            return bool((array >= 0).all())
    return True


def _tokens(said: Description, stack: Stack) -> dict[str, int]:
    if stack not in said.stacks:
        raise ValueError(f"it has states of the {stack}, which did not run")
    return {"tokens": said.tokens_of(stack)}


def _attention(wanted: Wanted, said: Description, entry: AttentionEntry) -> None:
    place = f"attention/{entry.name}/"
    sizes = {"heads": entry.heads}
    if said.states or said.config:  # else of attention alone: it may read others than the text
        sizes["queries"] = said.tokens_of(entry.stack)
        sizes["keys"] = said.tokens_of("encoder" if entry.kind == "cross" else entry.stack)
    wanted.take(place, ARRAYS["attention"], **sizes)
    _, sizes["queries"], _ = wanted.shape(f"{place}query")
    sizes["keys"] = wanted.shape(f"{place}key")[1]
    if not {*entry.steps} <= {*ARRAYS["steps"]}:
        raise ValueError(f"{entry.name} has a step of an unknown kind")
    wanted.take(f"{place}steps/", {step: ARRAYS["steps"][step] for step in entry.steps}, **sizes)
    for head, query, key, _ in entry.weights_set:
        if head >= entry.heads or query >= sizes["queries"] or key >= sizes["keys"]:
            raise ValueError(f"{entry.name} has no such weight as was set by hand")


def _stack(name: str) -> Stack:
    return "encoder" if name.startswith("encoder") else "decoder"


KEY = "trace"  # of the metadata
Trace = Any  # a Trace, whose module imports this one

_ATTENTION_FIELDS = (
    "name", "kind", "stack", "layer", "heads", "scale", "look_ahead", "window", "module", "doubt",
    *(stage.field for stage in STAGES if not stage.is_array),
)  # fmt: skip
Arrays = Mapping[str, NDArray[Any]]


def trace_file(trace: Trace) -> bytes:
    """The whole trace as safetensors: every recorded array, and all names in the metadata.

    `read_trace` gives the same trace again, array by array, bit by bit.
    """
    file = io.BytesIO()
    _write(trace, file)
    return file.getvalue()


def save_trace(trace: Trace, path: Path) -> None:
    """Writes the file beside its place, then puts it there: what is there is always whole."""
    with whole_file(path) as file:
        _write(trace, file)


def _write(trace: Trace, file: BinaryIO) -> None:
    # The arrays to store; and for each array that shares an earlier one's memory, the name of that
    # one: the input of a norm is a state of the stream, and is stored once.
    trace.fetch()
    arrays = _arrays(trace)
    first: dict[object, str] = {}
    kept, same = {}, {}
    for name, array in arrays.items():
        memory = array.__array_interface__
        seen = first.setdefault((memory["data"][0], array.shape, array.strides, array.dtype), name)
        if seen == name:
            kept[name] = array
        else:
            same[name] = seen
    array_file.write(file, kept, KEY, json.dumps(_description(trace) | {"same": same}))


def _description(trace: Trace) -> dict[str, Any]:
    """All that the file says beside its arrays."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": PRODUCT,
        "model": trace.model,
        "text": trace.text,
        "device": trace.device,
        "config": None if trace.config is None else asdict(trace.config),
        "intervention": _written_intervention(trace.intervention),
        "tokens": written_tokens(trace.tokens),
        "target_tokens": written_tokens(trace.target_tokens),
        "attention": [_written_attention(attention) for attention in trace.attention],
        "norms": [
            {"name": norm.name, "kind": norm.kind, "epsilon": norm.epsilon}
            for norm in proven(trace.norms)
        ],
        "feed_forward": [record.name for record in proven(trace.feed_forward)],
        "experts": [record.name for record in trace.experts],
        "written": list(trace.written),
        "states": {stack: len(states) for stack, states in proven_states(trace.residual).items()},
        "summands": {stack: list(of) for stack, of in proven_states(trace.summands).items()},
        "unproven": {
            part: why for part, why in trace.unproven.items() if NO_WEIGHTS.get(part) != why
        },
    }


def _arrays(trace: Trace) -> Arrays:
    """Every recorded array by its name in the file. Raises NotRecordedError for attention without vectors."""
    logits = None if "logits" in trace.unproven else trace.logits
    arrays: dict[str, NDArray[Any] | None] = {"angles": trace.angles, "logits": logits}
    for stack, states in proven_states(trace.residual).items():
        arrays |= {f"states/{stack}/{number}": state for number, state in enumerate(states)}
    for stack, parts in proven_states(trace.summands).items():
        arrays |= {f"summands/{stack}/{name}": part for name, part in parts.items()}
    for attention in trace.attention:
        if isinstance(attention, PartialAttention):
            attention.require_whole()
        place = f"attention/{attention.name}/"
        for name, vectors in zip(VECTORS, attention.vectors, strict=True):
            arrays[f"{place}{name}"] = vectors
        arrays |= _of(attention, "attention")
        arrays |= {f"{place}steps/{name}": step for name, step in attention.steps.items()}
    records = {"norms": proven(trace.norms), "feed_forward": proven(trace.feed_forward)}
    for kind, of_kind in (records | {"experts": trace.experts}).items():
        for record in of_kind:
            arrays |= _of(record, kind)
    arrays |= {f"written/{name}": written for name, written in trace.written.items()}
    if logits is not None and trace.vocabulary is not None:
        named = trace.vocabulary.arrays().items()
        arrays |= {f"vocabulary/{name}": array for name, array in named}
    return {name: array for name, array in arrays.items() if array is not None}


def _of(record: Any, kind: str) -> dict[str, NDArray[Any] | None]:
    """The arrays of a record by their names, but vectors of attention, which are not as they are recorded."""
    return {
        f"{kind}/{record.name}/{name}": getattr(record, one.field or name)
        for name, one in ARRAYS[kind].items()
        if not (kind == "attention" and name in VECTORS)
    }


def written_tokens(tokens: Iterable[Token]) -> list[dict[str, Any]]:
    """Tokens as JSON holds them."""
    return [asdict(token) | {"raw": token.raw.hex()} for token in tokens]


def _written_attention(attention: Attention) -> dict[str, Any]:
    return {name: getattr(attention, name) for name in _ATTENTION_FIELDS} | {
        "fill": str(attention.mask_value),  # JSON has no infinity
        "ablated": attention.ablated,
        "weights_set": attention.weights_set,
        "steps": list(attention.steps),
        "projection": asdict(attention.projection),
    }


def _written_intervention(intervention: Intervention) -> dict[str, Any]:
    given = asdict(replace(intervention, steering=None)) | {"fill": str(intervention.fill)}
    del given["steering"]
    if (
        steering := intervention.steering
    ) is not None:  # a file without it is read by older versions
        given["steering"] = vars(steering) | {"toward": steering.toward.tolist()}
    if intervention.patch:
        given["patch"]["parts"] = sorted(intervention.patch.parts)
    return {name: sorted(one) if isinstance(one, frozenset) else one for name, one in given.items()}
