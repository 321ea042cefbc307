"""One pass of a new model that records the order, the input and the output of each part, and what it tells:
layers and their runs, sub-layers, norms, feed-forwards and embedding tables.

The model's anatomy is read from this, so that no family of models has to be described by hand.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from model.analysis.attribution.modules import is_map
from model.hub.attention import Attended, witnessed
from model.nn.activations import GATED, Activation
from model.nn.config import Shape, Stack
from model.nn.layers import ACTIVATIONS
from model.nn.norms import NormPlace
from model.nn.places import Place

CLOSE = 1e-4  # of the largest number: what rounding in single precision explains


@dataclass(frozen=True, eq=False)
class PartCall:
    """One call of a part, with its first tensor in and its first out."""

    at: int  # its place in the order of the pass
    name: str  # its path inside the model
    module: nn.Module
    read: Tensor | None
    gave: Tensor
    whole: object = None  # all that it gave

    @property
    def gives_one(self) -> bool:
        """Whether it gave one tensor alone, and not a quantized one with its factor, for instance."""
        return isinstance(self.whole, Tensor)


@dataclass(frozen=True, eq=False)
class Probe:
    """What was called in one pass, in order."""

    calls: tuple[PartCall, ...]
    attended: tuple[Attended, ...]  # the calls of the attention function
    source: int  # tokens of the text
    target: int  # tokens of the decoder's input in an encoder–decoder; else 0


def is_norm(module: nn.Module) -> bool:
    name = type(module).__name__
    return name.endswith("Norm") or "LayerNorm" in name or "RMSNorm" in name


def is_table(module: nn.Module) -> bool:
    """Whether a part is an embedding: of tokens, positions, segments."""
    return type(module).__name__.endswith("Embedding") and not is_rotary(module)


def is_rotary(module: nn.Module) -> bool:
    return type(module).__name__.endswith("RotaryEmbedding")


def probe(model: nn.Module, run: Callable[[], object], *, source: int, target: int) -> Probe:
    """Runs the model once and records each of its parts and each call of the attention function.

    Args:
        run: the pass.
        source: tokens of its text.
        target: tokens that the decoder of two stacks reads; else 0.
    """
    events: list[object] = []

    def note(
        name: str,
        module: nn.Module,
        read: tuple[object, ...],
        named: dict[str, object],
        gave: object,
    ) -> None:
        first = gave[0] if isinstance(gave, tuple | list) and gave else gave
        values = (*read, *named.values())
        given = next((value for value in values if isinstance(value, Tensor)), None)
        if isinstance(first, Tensor) and first.numel():  # an adapter may get none of the tokens
            events.append(PartCall(len(events), name, module, given, first, gave))

    hooks = [(module, partial(note, name)) for name, module in model.named_modules() if name]
    with hooked(hooks, named=True), witnessed(events), torch.inference_mode():
        run()
    calls = tuple(event for event in events if isinstance(event, PartCall))
    attended = tuple(event for event in events if isinstance(event, Attended))
    return Probe(calls, attended, source, target)


@contextmanager
def hooked(
    hooks: Iterable[tuple[nn.Module, Callable[..., object]]], *, named: bool = False
) -> Iterator[None]:
    """Parts with a forward hook each, which is taken off again. named: whether it reads arguments by name."""
    with ExitStack() as stack:
        for module, hook in hooks:
            stack.enter_context(module.register_forward_hook(hook, with_kwargs=named))
        yield


def near(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal up to rounding, by the size of the second's largest number."""
    size = max(float(other.abs().max()), 1e-6)
    return bool((one.double() - other.double()).abs().max() <= CLOSE * size)


# One run of one layer of a hub model: its sub-layers and the places of its norms, identified by the numbers.
# Axes: B batch, T tokens, C width of the model, H heads, D width of a head.


@dataclass(frozen=True, eq=False)
class SubLayer:
    """An attention, or the feed-forward, of a layer, and its norms."""

    place: Place
    event: Attended | None  # of an attention
    maps: tuple[PartCall, ...]  # W_O of an attention; all maps of a feed-forward
    writes: PartCall  # the part whose output is added to the stream
    before: PartCall | None = None  # the norm that it reads through
    after: PartCall | None = None  # the norm on what it writes
    summed: PartCall | None = None  # the norm of its sum with the stream

    @property
    def starts(self) -> int:
        """Before this place in the order of the pass its norm has run."""
        return self.maps[0].at if self.event is None and self.maps else self._first.at

    @property
    def _first(self) -> PartCall | Attended:
        return self.writes if self.event is None else self.event

    @property
    def norm_place(self) -> NormPlace | None:
        """None without any norm."""
        if self.summed is not None:
            return "post"
        if self.after is not None:
            return "after" if self.before is None else "both"
        return None if self.before is None else "pre"


@dataclass(frozen=True, eq=False)
class LayerRun:
    """One run of a layer and its calls."""

    module: nn.Module
    attended: list[tuple[Place, Attended]]
    calls: list[PartCall]  # in order; the layer's own is the last
    turn: int  # which of its module's runs this is
    turns: int

    @property
    def span(self) -> tuple[int, int]:
        """The places of the first and the last call in the order of the pass."""
        places = [call.at for call in self.calls] + [event.at for _, event in self.attended]
        return min(places), max(places)

    @property
    def entered(self) -> Tensor:
        """(B, T, C): the input of the layer. Raises ValueError where the probe did not see it."""
        own = self._own
        if own is None or own.read is None or own.read.shape != own.gave.shape:
            raise ValueError("what one of its layers reads and gives could not be recorded")
        return own.read

    @property
    def _own(self) -> PartCall | None:
        return next((call for call in reversed(self.calls) if call.module is self.module), None)

    @property
    def maps(self) -> list[PartCall]:
        return [call for call in self.calls if is_map(call.module) and call.gives_one]

    @property
    def norms(self) -> list[PartCall]:
        """The norms, except those of queries and keys, which run inside an attention before it attends."""
        inner = {
            id(part): event.at for _, event in self.attended for part in event.module.modules()
        }
        return [
            call
            for call in self.calls
            if is_norm(call.module) and call.gives_one and call.at > inner.get(id(call.module), -1)
        ]

    def writers(self) -> list[PartCall]:
        """The last map of every attention, which writes to the stream: within its module or, where that has
        none after it attends (BERT), the next one. Raises ValueError where there is none."""
        found = []
        for place, event in self.attended:
            inside = {id(part) for part in event.module.modules()}
            later = [call for call in self.maps if call.at > event.at]
            own = [call for call in later if id(call.module) in inside]
            if not later:
                raise ValueError(f"no output matrix follows its attention {place.name}")
            found.append(own[-1] if own else later[0])
        return found

    def outputs(self) -> list[PartCall]:
        """W_O of every attention: its last map, if that reads the heads' outputs side by side. Raises
        ValueError where it does not."""
        writers = self.writers()
        for (place, event), writer in zip(self.attended, writers, strict=True):
            B, H, T, D = event.output.shape
            read = writer.read
            if read is None or read.shape != (B, T, H * D):
                raise ValueError(f"no output matrix follows its attention {place.name}")
            if not near(read, event.output.transpose(1, 2).reshape(B, T, H * D)):
                raise ValueError(
                    f"it changes the heads' outputs of {place.name} before its output matrix"
                )
        return writers

    def feeds(self) -> tuple[PartCall, ...]:
        """The maps of the feed-forward: those that run after every attention. Raises ValueError as `writers`
        does."""
        end = max(writer.at for writer in self.writers())
        return tuple(call for call in self.maps if call.at > end)

    def sublayers(self) -> tuple[SubLayer, ...]:
        """The sub-layers with their norms, in the arrangement in which their outputs add up to the layer's
        output. Raises ValueError where there is none."""
        entered, gave = self.entered, self.calls[-1].gave
        attentions = tuple(
            SubLayer(place, event, (writer,), writer)
            for (place, event), writer in zip(self.attended, self.writers(), strict=True)
        )
        for feed in self._feed_forwards():
            for post in (False, True):
                parts = attentions if feed is None else (*attentions, feed)
                found, state = self._arranged(parts, entered, post=post)
                if near(state, gave):
                    return found
        place = self.attended[0][0]
        raise ValueError(
            f"what the sub-layers of its {place.stack} layer {place.layer} write does not add up to what the "
            "layer gives"
        )

    def _feed_forwards(self) -> Iterator[SubLayer | None]:
        """What may be the feed-forward: the last map writes, or a part with weights of its own; or there is
        none."""
        maps, first = self.feeds(), self.attended[0][0]
        place = Place(first.stack, first.layer, "feed_forward")
        end = max(writer.at for writer in self.writers())
        attentions = {id(event.module) for _, event in self.attended}
        parts = [
            call
            for call in reversed(self.calls)
            if call.at > end
            and not is_map(call.module)
            and not is_norm(call.module)
            and next(call.module.parameters(), None) is not None
            and not any(id(part) in attentions for part in call.module.modules())
        ]
        for writes in (*maps[-1:], *parts):
            if writes.gave.numel() == self.entered.numel():
                yield SubLayer(place, None, maps, writes)
        yield None

    def _arranged(
        self, parts: tuple[SubLayer, ...], entered: Tensor, *, post: bool
    ) -> tuple[tuple[SubLayer, ...], Tensor]:
        """The sub-layers with the norms that read the stream or what they write, and the state at the end.
        post: whether the sums are normed."""
        state, found = entered, []
        for part in parts:
            before = None if post else self._norm_before(part, (state, entered))
            after = next(self._norms_of((part.writes.gave,), since=part.writes.at), None)
            written = (after or part.writes).gave
            if written.numel() != state.numel():
                sizes = (" × ".join(map(str, one.shape)) for one in (written, state))
                raise ValueError(
                    "{} writes {} numbers, and its layer reads {}".format(part.place.name, *sizes)
                )
            state = state + written.reshape(state.shape)
            summed = next(self._norms_of((state,), since=part.writes.at), None) if post else None
            state = state if summed is None else summed.gave.reshape(state.shape)
            found.append(replace(part, before=before, after=after, summed=summed))
        return tuple(found), state

    def _norm_before(self, part: SubLayer, states: tuple[Tensor, ...]) -> PartCall | None:
        """The norm of one of some states that a sub-layer reads; the last one where none is seen to be read,
        because several may run before both sub-layers (Falcon)."""
        fitting = [call for call in self._norms_of(states) if call.at < part.starts]
        reading = part.maps[:1] if part.event is None else self._maps_into(part.event)
        read = [call.read for call in reading if call.read is not None]
        own = [call for call in fitting if any(_equal(call.gave, one) for one in read)]
        return next(reversed(own or fitting), None)

    def _maps_into(self, event: Attended) -> list[PartCall]:
        """The maps of an attention that run before it attends."""
        inside = {id(part) for part in event.module.modules()}
        return [call for call in self.maps if id(call.module) in inside and call.at < event.at]

    def _norms_of(self, states: tuple[Tensor, ...], *, since: int = -1) -> Iterator[PartCall]:
        """The norms since a place that read one of some states."""
        for call in self.norms:
            read = call.read
            if call.at > since and read is not None and any(_equal(read, one) for one in states):
                yield call


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two states are equal; OPT leaves the batch axis out of some."""
    return one.numel() == other.numel() and near(one.reshape(other.shape), other)


def reads_at_once(parts: tuple[SubLayer, ...]) -> bool:
    """Whether attention and feed-forward read one state (GPT-NeoX, Phi)."""
    norms = [part.before for part in parts if part.before is not None]
    if len(parts) != 2 or len(norms) != 2:
        return False
    one, other = norms[0].read, norms[1].read
    return one is not None and other is not None and torch.equal(one, other)


def layers_of(model: nn.Module, found: Probe, shape: Shape) -> list[LayerRun]:
    """The layers in order, each with what ran in it. A layer whose module runs several times is several.

    Raises ValueError where they are not elements of a list of modules.
    """
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    placed = _placed(found, shape)
    blocks = {id(event.module): _block_of(event.module, placed, lists) for _, event in placed}
    ends: dict[int, list[int]] = {
        id(block): [call.at for call in found.calls if call.module is block]
        for block in blocks.values()
    }
    home = {id(part): block for block in blocks.values() for part in block.modules()}

    def run_of(block: nn.Module, at: int) -> tuple[int, int]:
        return id(block), sum(end < at for end in ends[id(block)])

    attended: dict[tuple[int, int], list[tuple[Place, Attended]]] = {}
    for place, event in placed:
        key = run_of(blocks[id(event.module)], event.at)
        attended.setdefault(key, []).append((place, event))
    inside: dict[tuple[int, int], list[PartCall]] = {}
    for call in found.calls:
        if id(call.module) in home:
            inside.setdefault(run_of(home[id(call.module)], call.at), []).append(call)
    return [
        LayerRun(
            blocks[id(own[0][1].module)],
            own,
            inside.get(key, []),
            key[1],
            max(len(ends[key[0]]), 1),
        )
        for key, own in attended.items()
    ]


def attend_in_all(model: nn.Module, layers: Sequence[LayerRun]) -> None:
    """Raises ValueError for a model that has other layers between those with attention."""
    for stack in ("encoder", "decoder"):
        own = [id(layer.module) for layer in layers if layer.attended[0][0].stack == stack]
        lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
        whole = next((parts for parts in lists if {id(part) for part in parts} & {*own}), None)
        if whole is None or {id(part) for part in whole} <= {*own}:
            continue
        found = [number for number, part in enumerate(whole) if id(part) in own]
        named = ", ".join(f"{number} (here L{at})" for at, number in enumerate(found))
        raise ValueError(
            f"only these of its {len(whole)} layers have attention, counted from 0: {named}; what the others "
            "do is not shown"
        )


def _placed(found: Probe, shape: Shape) -> list[tuple[Place, Attended]]:
    """The place of each call of the attention function, told by the lengths of both sequences."""
    counted: dict[tuple[str, str], int] = {}
    placed = []
    for event in found.attended:
        queries, keys = event.query.shape[-2], event.key.shape[-2]
        stack: Stack = "encoder" if shape == "encoder" else "decoder"
        if shape == "encoder-decoder" and queries == found.source:
            stack = "encoder"
        if shape == "encoder-decoder" and queries == found.target and keys == found.source:
            place = Place(stack, counted.get((stack, "cross"), 0), "cross")
        else:
            layer = counted.get((stack, "self"), 0)
            place = Place(stack, layer, "causal" if _looks_back_only(event) else "self")
        named = (stack, "cross" if place.kind == "cross" else "self")
        counted[named] = counted.get(named, 0) + 1
        placed.append((place, event))
    return placed


def _looks_back_only(event: Attended) -> bool:
    if event.mask is None:
        return event.causal
    queries, keys = event.query.shape[-2], event.key.shape[-2]
    later = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    return not bool(event.mask.expand(*event.mask.shape[:-2], queries, keys)[..., later].any())


def _block_of(
    module: nn.Module, placed: Sequence[tuple[Place, Attended]], lists: Sequence[nn.ModuleList]
) -> nn.Module:
    """The layer of an attention module: its element of the outermost list of modules in which no other
    self-attention stands."""
    selves = {id(event.module) for place, event in placed if place.kind != "cross"}
    for parts in lists:  # outer lists come first
        for part in parts:
            inside = {id(inner) for inner in part.modules()}
            if id(module) in inside and len(inside & selves) <= 1:
                return part
    raise ValueError("its layers are not a list of layers")


Half = Literal["all", "first", "second"]


@dataclass(frozen=True, eq=False)
class FeedForwardParts:
    """The map whose values are activated (or a half of it), and the map back to the width."""

    before: nn.Module
    half: Half  # which part of its values: both maps of a gated layer may be one matrix
    w_out: nn.Module
    activation: Activation
    hidden: int

    def activated(self, values: Tensor) -> Tensor:
        """(…, M): the values before the activation, out of the map's output."""
        if self.half == "all":
            return values
        return values.chunk(2, -1)[0 if self.half == "first" else 1]


def feed_forward_parts(maps: Sequence[PartCall]) -> FeedForwardParts:
    """The parts of a layer with one map before the activation, or two (gated), or two in one matrix.

    The nearest of the known activations is taken. Raises ValueError where none is near.
    """
    *w_in, w_out = maps
    hidden = w_out.read
    if hidden is None or not 1 <= len(w_in) <= 2:
        raise ValueError(
            f"its feed-forward has {len(maps)} maps, a layout that this app does not know"
        )
    size = max(float(hidden.abs().max()), 1e-6)
    found: list[tuple[float, FeedForwardParts]] = []
    for module, before, half, other in _candidates(w_in, hidden.shape[-1]):
        for name in GATED if other is not None else sorted(set(ACTIVATIONS) - GATED):
            made = ACTIVATIONS[name](before) * (1.0 if other is None else other)
            if made.shape == hidden.shape:
                parts = FeedForwardParts(module, half, w_out.module, name, hidden.shape[-1])
                found.append((float((made - hidden).abs().max()) / size, parts))
    nearest = min(found, key=lambda pair: pair[0], default=None)
    if nearest is None or nearest[0] > CLOSE:
        raise ValueError("its feed-forward uses an activation that this app does not know")
    return nearest[1]


def _candidates(
    w_in: Sequence[PartCall], width: int
) -> list[tuple[nn.Module, Tensor, Half, Tensor | None]]:
    """Each map whose output may be activated, with its values and what they are multiplied by."""
    module, first = w_in[0].module, w_in[0].gave
    if len(w_in) == 2:
        second = w_in[1].gave
        return [(module, first, "all", second), (w_in[1].module, second, "all", first)]
    if first.shape[-1] == 2 * width:
        one, other = first.chunk(2, -1)
        return [(module, one, "first", other), (module, other, "second", one)]
    return [(module, first, "all", None)]


# The embedding tables of a Hugging Face model: tokens, positions, segments.
# They are found by their names, and checked against the input of the first layer.


def model_width(found: Probe) -> int:
    """The width of the first embedding. Raises ValueError where there is none."""
    for call in found.calls:
        if is_table(call.module):
            return call.gave.shape[-1]
    raise ValueError("it does not look its tokens up in a table")


def looked_up(
    found: Probe, stack: Stack, length: int, first: int
) -> tuple[PartCall, PartCall | None, PartCall | None]:
    """What a stack looks up before its first layer: tokens, positions, segments.

    Args:
        length: tokens that the stack reads.
        first: where the first layer begins in the order of the pass.

    Raises ValueError where there is no token table, and where one kind has two.
    """
    before = [
        call
        for call in found.calls
        if call.at < first
        and is_table(call.module)
        and call.gives_one
        and call.gave.shape[-2] == length
        and call.gave.shape[:-2].numel() == 1  # not a number for each pair of tokens
    ]
    roles: dict[str, PartCall] = {}
    for call in before:
        role = _role(call.name)
        if role in roles and roles[role].module is not call.module:
            raise ValueError(f"its {stack} looks up {role} in two tables")
        roles[role] = call
    if "tokens" not in roles:
        raise ValueError(f"no token table was found in its {stack}")
    width = roles["tokens"].gave.shape[-1]
    # Narrower ones are angles, which turn queries and keys (RoFormer).
    added = {role: call for role, call in roles.items() if call.gave.shape[-1] >= width}
    return added["tokens"], added.get("positions"), added.get("segments")


def _role(name: str) -> str:
    last = name.rpartition(".")[2].lower()
    if "pos" in last or last == "wpe":
        return "positions"
    return "segments" if "type" in last or "segment" in last else "tokens"


def token_factor(
    tokens: PartCall, positions: PartCall | None, segments: PartCall | None, entered: Tensor | None
) -> float:
    """The factor of the token embedding in the sum that the first layer, or a norm before it, reads: 1,
    √width (Vaswani et al. 2017), or another.

    Args:
        tokens, positions, segments: what `looked_up` gives.
        entered: that sum, (1, token, width); None: it is not known.

    Raises ValueError where the sum has other parts.
    """
    if entered is None:
        raise ValueError("the input of its first layer could not be recorded")
    weight = getattr(tokens.module, "weight", None)
    if not isinstance(weight, Tensor) or tokens.read is None:
        raise ValueError("its tokens are not looked up in a table")
    width = entered.shape[-1]
    if weight.shape[-1] != width:
        raise ValueError("its token table is not as wide as its layers")
    rows = weight[tokens.read]
    added = sum(
        (call.gave for call in (positions, segments) if call is not None), entered.new_zeros(1)
    )
    rest = entered - added
    measured = float((rest * rows).sum() / rows.square().sum().clamp_min(1e-12))
    for factor in (1.0, math.sqrt(width), measured):
        if near(rows * factor + added, entered):
            return factor
    raise ValueError(
        "the input of its first layer is more than the sum of tokens, positions and segments"
    )


def first_row(positions: PartCall) -> int:
    """The row of the table that position 0 uses; -1 where there is no table."""
    table = getattr(positions.module, "weight", None)
    if not isinstance(table, Tensor):
        return -1
    first = positions.gave.reshape(-1, positions.gave.shape[-1])[0]
    return int((table - first).abs().amax(-1).argmin())
