"""The content of a trace file: its description, JSON of known keys and bounds, and the arrays it asks for."""

import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.nn.config import Projection, ProvenPart, Stack, TransformerConfig
from model.nn.intervention import LARGEST_MASK_VALUE, LARGEST_SCALE, SMALLEST, Intervention
from model.nn.norms import NormKind
from model.nn.patches import Patch
from model.nn.places import Place
from model.nn.stages import SCORE_STAGES, STAGES
from model.system.files import strict_json, whole_file
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
Hexadecimal = Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=2_000)]


class StrictEntry(BaseModel):
    """A part of the description: no unknown keys, no other types, no infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


Entry = TypeVar("Entry", bound=StrictEntry)


class TokenEntry(StrictEntry):
    id: Annotated[int, Field(ge=0, lt=2**31)]
    text: ShortText
    raw: Hexadecimal = ""
    special: bool = False
    span: tuple[Count, Count] | None = None

    def read(self) -> Token:
        return Token(self.id, self.text, bytes.fromhex(self.raw), self.special, self.span)


class ProjectionEntry(StrictEntry):
    bias: bool = True
    normed: bool = False
    turned: bool = False


class AttentionEntry(StrictEntry):
    """An attention sub-layer, without its arrays."""

    name: PlaceName
    kind: Literal["self", "causal", "cross"]
    stack: Stack
    layer: LayerNumber
    module: ShortText = ""  # in the network that it was captured from
    doubt: ShortText = ""  # what is not certain of it
    heads: Heads
    scale: Annotated[float, Field(ge=-LARGEST_SCALE, le=LARGEST_SCALE)]
    fill: PlaceName  # what a masked score became; JSON has no infinity
    look_ahead: bool
    cap: Annotated[float, Field(ge=SMALLEST, le=LARGEST)] | None = None
    window: PositiveCount | None = None
    ablated: tuple[Count, ...] = ()
    weights_set: tuple[tuple[Count, Count, Count, Share], ...] = ()
    steps: tuple[PlaceName, ...] = ()
    projection: ProjectionEntry = ProjectionEntry()

    @property
    def place(self) -> Place:
        """Raises ValueError where its name is another."""
        place = Place(self.stack, self.layer, self.kind, self.module)
        if place.name != self.name:
            raise ValueError(f"an attention sub-layer of {place.name} is named otherwise")
        return place

    @property
    def projected(self) -> Projection:
        return Projection(self.projection.bias, self.projection.normed, self.projection.turned)


class NormEntry(StrictEntry):
    name: PlaceName
    kind: NormKind
    epsilon: Annotated[float, Field(ge=0, le=1)]


class PatchEntry(StrictEntry):
    model: ShortText
    text: str
    parts: tuple[tuple[str, PlaceName, Count], ...]


class InterventionEntry(StrictEntry):
    """Every field of `Intervention`; what earlier versions did not have has a default."""

    scale: float | None = None
    mask: PlaceName = "model"
    hidden: tuple[Count, ...] = ()
    blocked: tuple[tuple[Count, Count], ...] = ()
    fill: PlaceName = "-inf"
    positions: bool = True
    ablated: tuple[tuple[PlaceName, Count], ...] = ()
    weights: tuple[tuple[PlaceName, Count, Count, Count, Share], ...] = ()
    stream: tuple[tuple[PlaceName, Count, Count, float], ...] = ()
    patch: PatchEntry | None = None
    dropout: float = 0.0
    seed: Annotated[int, Field(ge=0, le=2**63)] = 0
    only: tuple[PlaceName, ...] | None = None
    window: PositiveCount | None = None
    cap: bool = True
    bias: bool = True
    sinks: bool = True

    def read(self) -> Intervention:
        patch = self.patch
        given = self.model_dump(exclude={"fill", "patch"})
        return Intervention(
            **given,
            fill=mask_value(self.fill),
            patch=None if patch is None else Patch(patch.model, patch.text, frozenset(patch.parts)),  # type: ignore[arg-type]
        )


class Description(StrictEntry):
    """All that a file says beside its arrays. `version` 1 lacks what has a default."""

    format: Literal["attention-visualizer trace"]
    version: Literal[1, 2]
    written_by: ShortText = ""
    model: ShortText
    text: str
    device: ShortText = ""
    config: TransformerConfig | None = None
    intervention: InterventionEntry
    tokens: tuple[TokenEntry, ...]
    target_tokens: tuple[TokenEntry, ...]
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
    found = validated(Description, text)
    _check(found)
    return found


def validated(entry: type[Entry], text: str) -> Entry:
    """The entry that a JSON text holds. Raises ValueError, in a clause, for anything else."""
    strict_json(text)
    try:
        return entry.model_validate_json(text)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, wrong["loc"]))[:100]
        raise ValueError(f"what it says of “{where}” is not so: {wrong['msg']}") from error


def mask_value(written: str) -> float:
    """What a masked score became. Raises ValueError for what no pass can put there."""
    value = float(written)
    if value != -math.inf and not abs(value) <= LARGEST_MASK_VALUE:
        raise ValueError("the mask puts in something that is neither minus infinity nor a number")
    return value


def _check(found: Description) -> None:
    """Raises ValueError where parts of a description do not fit together."""
    longest = settings().longest_text
    if len(found.text) > longest:
        raise ValueError(f"its text is longer than {longest:,} characters")
    if not (found.tokens and found.attention):
        raise ValueError("it has no tokens or no attention")
    _check_tokens(found)
    for listed in (
        [entry.name for entry in found.attention],
        [entry.name for entry in found.norms],
        found.feed_forward,
        found.experts,
        found.written,
    ):
        if len(set(listed)) < len(listed):
            raise ValueError("it lists something twice")
    for name in (*(one.name for one in found.norms), *found.feed_forward, *found.experts):
        Place.named(name)
    for name in found.written:
        Place.named(name)
    for entry in found.attention:
        _check_attention(entry)
    if found.config is not None:
        _check_config(found.config, found)


def _check_tokens(found: Description) -> None:
    for entry in (*found.tokens, *found.target_tokens):
        if entry.span is not None and not entry.span[0] <= entry.span[1]:
            raise ValueError("a token ends before it begins")
    length = len(found.text)
    if any(entry.span is not None and entry.span[1] > length for entry in found.tokens):
        raise ValueError("a token stands behind the end of the text")


def _check_attention(entry: AttentionEntry) -> None:
    """Raises ValueError where its name, its fill, its scale or its heads are none."""
    _ = entry.place
    mask_value(entry.fill)
    if 0 < abs(entry.scale) < SMALLEST:
        raise ValueError(f"{entry.name} multiplies by less than single precision holds")
    if any(head >= entry.heads for head in entry.ablated):
        raise ValueError(f"{entry.name} leaves out a head that it does not have")


def _check_config(config: TransformerConfig, found: Description) -> None:
    """Raises ValueError for sizes that are not those of the pass: pages draw as many layers as they say."""
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    for entry in found.attention:
        if entry.layer >= layers[entry.stack]:
            raise ValueError("its sizes are of a model with fewer layers")
    ran = {entry.stack for entry in found.attention}
    if max(layers.values()) > 10_000 or {stack for stack in layers if layers[stack]} != ran:
        raise ValueError("its sizes are of a model with other stacks")
    if max(config.d_model, config.d_vocab, config.n_ctx, config.d_mlp, config.heads) > 10**8:
        raise ValueError("its sizes are those of no model")


VECTORS = ("query", "key", "value")
# By their names in a file, the fields of the other arrays of an attention sub-layer's record.
ATTENTION_ARRAYS = {one.field: one.field for one in STAGES if one.is_array}
ATTENTION_ARRAYS |= {"output": "output", "mask": "own_mask"}
NORM_ARRAYS = ("input", "mean", "inverse_deviation", "gamma", "beta")
EXPERT_ARRAYS = ("logits", "weights", "chosen")
# What numbers an array may hold. "lowered": also minus infinity, and what stands for it in single precision.
NumberKind = Literal["any", "finite", "lowered", "positive", "counts"]
_LOWERED_STEPS = ("biased", "masked")
_STEPS = ("scores", *(stage.name for stage in SCORE_STAGES), "masked", "weights", "dropped")


@dataclass(frozen=True)
class DivisorOf:
    """Any size that divides a number: heads share keys in groups."""

    number: int


# A size, the name of one that is the same elsewhere, one of several, or a divisor.
AxisSize = int | str | tuple[int, ...] | DivisorOf


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

    def take(self, name: str, kind: str, *axes: AxisSize, numbers: NumberKind = "finite") -> None:
        """Raises ValueError where the array is missing, or has another kind or shape."""
        if not self.has(name):
            raise ValueError(f"the array {name} is missing")
        at = self._same.get(name, name)
        stored = self._stored[at]
        if stored.kind != kind or 0 in stored.shape:
            raise ValueError(f"the array {name} holds other numbers than {kind}")
        if len(stored.shape) != len(axes) or not all(map(self._fits, stored.shape, axes)):
            raise ValueError(f"the array {name} has the shape {stored.shape}, which does not fit")
        self._left.discard(name)
        self.numbers.setdefault(at, set()).add(numbers)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._stored[self._same.get(name, name)].shape

    def refuse_others(self) -> None:
        """Raises ValueError for arrays that nothing has asked for."""
        if self._left:
            raise ValueError(f"it has an array that no trace has: {min(self._left)}")

    def _fits(self, size: int, axis: AxisSize) -> bool:
        if isinstance(axis, str):
            return size == self._sizes.setdefault(axis, size)
        if isinstance(axis, DivisorOf):
            return axis.number % size == 0
        return size in axis if isinstance(axis, tuple) else size == axis


def fitted(said: Description, stored: Mapping[str, Stored]) -> Wanted:
    """The arrays of a description. Raises ValueError, in a clause, where those of a file are others."""
    wanted = Wanted(stored, said.same)
    for stack, count in said.states.items():
        tokens = _tokens(said, stack)
        for number in range(count):
            wanted.take(f"states/{stack}/{number}", "F32", tokens, "d_model")
    for stack, parts in said.summands.items():
        tokens = _tokens(said, stack)
        for part in parts:
            wanted.take(f"summands/{stack}/{part}", "F32", (1, tokens), "d_model")
    if wanted.has("angles"):
        wanted.take("angles", "F32", tuple(map(said.tokens_of, said.stacks)), "turned pairs")
    for entry in said.attention:
        _attention(wanted, said, entry)
    _require_readers(wanted, said)
    _sub_layers(wanted, said)
    _logits(wanted, said)
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


def _tokens(said: Description, stack: Stack) -> int:
    if stack not in said.stacks:
        raise ValueError(f"it has states of the {stack}, which did not run")
    return said.tokens_of(stack)


def _attention(wanted: Wanted, said: Description, entry: AttentionEntry) -> None:
    place, heads = f"attention/{entry.name}", entry.heads
    queries: AxisSize = said.tokens_of(entry.stack)
    keys: AxisSize = said.tokens_of("encoder" if entry.kind == "cross" else entry.stack)
    if not (said.states or said.config):  # of attention alone: it may read others than the text
        queries, keys = f"queries of {place}", f"keys of {place}"
    groups = DivisorOf(heads)
    d_k, d_v = f"d_k of {place}", f"d_v of {place}"
    wanted.take(f"{place}/query", "F32", heads, queries, d_k)
    wanted.take(f"{place}/key", "F32", groups, keys, d_k)
    wanted.take(f"{place}/value", "F32", groups, keys, d_v)
    wanted.take(f"{place}/output", "F32", heads, queries, d_v)
    _weights_set(wanted, entry)
    if wanted.has(mask := f"{place}/mask"):
        each: tuple[AxisSize, ...] = () if len(wanted.shape(mask)) == 2 else (heads,)
        wanted.take(mask, "BOOL", *each, queries, keys, numbers="any")
    if wanted.has(bias := f"{place}/bias"):
        rows: AxisSize = 1 if wanted.shape(bias)[1:2] == (1,) else queries
        wanted.take(bias, "F32", (1, heads), rows, keys, numbers="lowered")
    if wanted.has(sinks := f"{place}/sinks"):
        wanted.take(sinks, "F32", heads)
    for step in entry.steps:
        if step == "sink_weights":
            wanted.take(f"{place}/steps/{step}", "F32", heads, queries)
        elif step in _STEPS:
            numbers: NumberKind = "lowered" if step in _LOWERED_STEPS else "finite"
            wanted.take(f"{place}/steps/{step}", "F32", heads, queries, keys, numbers=numbers)
        else:
            raise ValueError(f"{entry.name} has a step of an unknown kind")


def _weights_set(wanted: Wanted, entry: AttentionEntry) -> None:
    heads, queries, _ = wanted.shape(f"attention/{entry.name}/query")
    keys = wanted.shape(f"attention/{entry.name}/key")[1]
    for head, query, key, _ in entry.weights_set:
        if head >= heads or query >= queries or key >= keys:
            raise ValueError(f"{entry.name} has no such weight as was set by hand")


def _require_readers(wanted: Wanted, said: Description) -> None:
    """Raises ValueError for tokens that no attention reads: pages draw every one of them."""
    read = {
        wanted.shape(f"attention/{entry.name}/{vectors}")[1]
        for entry in said.attention
        for vectors in ("query", "key")
    }
    if any(len(tokens) not in read for tokens in (said.tokens, said.target_tokens) if tokens):
        raise ValueError("it has more or fewer tokens than its attention reads")


def _sub_layers(wanted: Wanted, said: Description) -> None:
    """Norms and feed-forwards. Their names were checked with the description."""
    for norm in said.norms:
        place, width = f"norms/{norm.name}", f"width of {norm.name}"
        tokens = _tokens(said, _stack(norm.name))
        wanted.take(f"{place}/input", "F32", tokens, width)
        wanted.take(f"{place}/mean", "F32", tokens)
        wanted.take(f"{place}/inverse_deviation", "F32", tokens, numbers="positive")
        for name in ("gamma", "beta"):
            wanted.take(f"{place}/{name}", "F32", width)
        if wanted.has(output := f"{place}/output"):
            wanted.take(output, "F32", tokens, width)
    for name in said.feed_forward:
        for array in ("before", "hidden"):
            wanted.take(
                f"feed_forward/{name}/{array}",
                "F32",
                _tokens(said, _stack(name)),
                f"d_mlp of {name}",
            )
    for name in said.experts:
        place, tokens = f"experts/{name}", _tokens(said, _stack(name))
        wanted.take(f"{place}/logits", "F32", tokens, f"experts of {name}", numbers="lowered")
        wanted.take(f"{place}/weights", "F32", tokens, f"chosen of {name}")
        wanted.take(f"{place}/chosen", "I64", tokens, f"chosen of {name}", numbers="counts")
    for name in said.written:
        wanted.take(f"written/{name}", "F32", _tokens(said, _stack(name)), "d_model")


def _logits(wanted: Wanted, said: Description) -> None:
    if not wanted.has("logits"):
        return  # an array of a vocabulary is then one too many
    tokens = _tokens(said, said.stacks[-1])
    wanted.take("logits", "F32", tokens, "vocabulary", numbers="lowered")
    if wanted.has("vocabulary/ends"):
        wanted.take("vocabulary/text", "U8", "letters", numbers="any")
        wanted.take("vocabulary/ends", "I64", "named tokens", numbers="counts")
        wanted.take("vocabulary/special", "BOOL", "named tokens", numbers="any")
        if wanted.shape("vocabulary/ends") > wanted.shape("logits")[1:]:
            raise ValueError("it names more tokens than it has logits of")


def _stack(name: str) -> Stack:
    return "encoder" if name.startswith("encoder") else "decoder"


KEY = "trace"  # of the metadata
Trace = Any  # a Trace, whose module imports this one

_ATTENTION_FIELDS = (
    "name", "kind", "stack", "layer", "heads", "scale", "look_ahead", "window", "module", "doubt",
    *(stage.field for stage in STAGES if not stage.is_array),
)  # fmt: skip
Arrays = Mapping[str, NDArray[Any]]
Written = Mapping[str, Any]  # what JSON holds


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
    kept, same = _without_repeats(_arrays(trace))
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
        "tokens": [_written_token(token) for token in trace.tokens],
        "target_tokens": [_written_token(token) for token in trace.target_tokens],
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
        place = f"attention/{attention.name}"
        for name, vectors in zip(VECTORS, attention.vectors, strict=True):
            arrays[f"{place}/{name}"] = vectors
        fields = ATTENTION_ARRAYS.items()
        arrays |= {f"{place}/{name}": getattr(attention, field) for name, field in fields}
        arrays |= {f"{place}/steps/{name}": step for name, step in attention.steps.items()}
    for norm in proven(trace.norms):
        place = f"norms/{norm.name}"
        arrays |= {f"{place}/{name}": getattr(norm, name) for name in NORM_ARRAYS}
        arrays[f"{place}/output"] = norm.recorded
    for record in proven(trace.feed_forward):
        place = f"feed_forward/{record.name}"
        arrays |= {f"{place}/before": record.before, f"{place}/hidden": record.hidden}
    for routed in trace.experts:
        place = f"experts/{routed.name}"
        arrays |= {f"{place}/{name}": getattr(routed, name) for name in EXPERT_ARRAYS}
    arrays |= {f"written/{name}": written for name, written in trace.written.items()}
    if logits is not None and trace.vocabulary is not None:
        named = trace.vocabulary.arrays().items()
        arrays |= {f"vocabulary/{name}": array for name, array in named}
    return {name: array for name, array in arrays.items() if array is not None}


def _without_repeats(arrays: Arrays) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays to store; and for each array that shares an earlier one's memory, the name of that
    one: the input of a norm is a state of the stream, and is stored once."""
    first: dict[object, str] = {}
    kept, same = {}, {}
    for name, array in arrays.items():
        memory = array.__array_interface__
        seen = first.setdefault((memory["data"][0], array.shape, array.strides, array.dtype), name)
        if seen == name:
            kept[name] = array
        else:
            same[name] = seen
    return kept, same


def _written_token(token: Token) -> Written:
    return asdict(token) | {"raw": token.raw.hex()}


def _written_attention(attention: Attention) -> Written:
    return {name: getattr(attention, name) for name in _ATTENTION_FIELDS} | {
        "fill": str(attention.mask_value),  # JSON has no infinity
        "ablated": attention.ablated,
        "weights_set": attention.weights_set,
        "steps": list(attention.steps),
        "projection": asdict(attention.projection),
    }


def _written_intervention(intervention: Intervention) -> Written:
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asdict(intervention).items()
    } | {"fill": str(intervention.fill), "patch": _written_patch(intervention.patch)}


def _written_patch(patch: Patch | None) -> Written | None:
    return None if patch is None else asdict(patch) | {"parts": sorted(patch.parts)}
