"""What a trace file says in words: the names and settings of a trace, as JSON of known keys and bounds."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.nn.config import NormKind, Part, Projection, Stack, TransformerConfig
from model.nn.intervention import LARGEST_MASK_VALUE, LARGEST_SCALE, SMALLEST, Intervention
from model.nn.patches import Patch
from model.nn.places import Place
from model.system.settings import settings
from model.trace.array_file import strict_json
from model.trace.records import Token

FORMAT, VERSION = "attention-visualizer trace", 2
LARGEST = 1e12  # of any number in a file: products of two stay within single precision
Name = Annotated[str, Field(max_length=1_000)]
PlaceName = Annotated[str, Field(max_length=60)]
Count = Annotated[int, Field(ge=0, le=10_000_000)]
Size = Annotated[int, Field(ge=1, le=10_000_000)]
Few = Field(max_length=10_000)  # parts of a kind
Layer = Annotated[int, Field(ge=0, lt=10_000)]
Heads = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Hexadecimal = Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=2_000)]


class Entry(BaseModel):
    """A part of the description: no unknown keys, no other types, no infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class TokenEntry(Entry):
    id: Annotated[int, Field(ge=0, lt=2**31)]
    text: Name
    raw: Hexadecimal = ""
    special: bool = False
    span: tuple[Count, Count] | None = None

    def read(self) -> Token:
        return Token(self.id, self.text, bytes.fromhex(self.raw), self.special, self.span)


class ProjectionEntry(Entry):
    bias: bool = True
    normed: bool = False
    turned: bool = False


class AttentionEntry(Entry):
    """An attention sub-layer, without its arrays."""

    name: PlaceName
    kind: Literal["self", "causal", "cross"]
    stack: Stack
    layer: Layer
    module: Name = ""  # in the network that it was captured from
    doubt: Name = ""  # what is not certain of it
    heads: Heads
    scale: Annotated[float, Field(ge=-LARGEST_SCALE, le=LARGEST_SCALE)]
    fill: PlaceName  # what a masked score became; JSON has no infinity
    look_ahead: bool
    cap: Annotated[float, Field(ge=SMALLEST, le=LARGEST)] | None = None
    window: Size | None = None
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


class NormEntry(Entry):
    name: PlaceName
    kind: NormKind
    epsilon: Annotated[float, Field(ge=0, le=1)]


class PatchEntry(Entry):
    model: Name
    text: str
    parts: tuple[tuple[str, PlaceName, Count], ...]


class InterventionEntry(Entry):
    """Every field of `Intervention`; what earlier versions did not have has a default."""

    scale: float | None = None
    mask: PlaceName = "model"
    hidden: tuple[Count, ...] = ()
    blocked: tuple[tuple[Count, Count], ...] = ()
    fill: PlaceName = "-inf"
    positions: bool = True
    ablated: tuple[tuple[PlaceName, Count], ...] = ()
    weights: tuple[tuple[PlaceName, Count, Count, Count, Share], ...] = ()
    patch: PatchEntry | None = None
    dropout: float = 0.0
    seed: Annotated[int, Field(ge=0, le=2**63)] = 0
    only: tuple[PlaceName, ...] | None = None
    window: Size | None = None
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


class Description(Entry):
    """All that a file says beside its arrays. `version` 1 lacks what has a default."""

    format: Literal["attention-visualizer trace"]
    version: Literal[1, 2]
    written_by: Name = ""
    model: Name
    text: str
    device: Name = ""
    config: TransformerConfig | None = None
    intervention: InterventionEntry
    tokens: tuple[TokenEntry, ...]
    target_tokens: tuple[TokenEntry, ...]
    attention: Annotated[tuple[AttentionEntry, ...], Few]
    norms: Annotated[tuple[NormEntry, ...], Few]
    feed_forward: Annotated[tuple[PlaceName, ...], Few]
    experts: Annotated[tuple[PlaceName, ...], Few] = ()
    written: Annotated[tuple[PlaceName, ...], Few] = ()
    states: dict[Stack, Size]
    summands: dict[Stack, tuple[Literal["tokens", "positions", "segments"], ...]]
    unproven: dict[Part, Name] = {}
    same: dict[Name, Name]

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
    try:
        found = Description.model_validate_json(text)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, wrong["loc"]))[:100]
        raise ValueError(f"what it says of “{where}” is not so: {wrong['msg']}") from error
    _check(found)
    return found


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
