"""Which part of a Hugging Face model plays which role, read from one pass and proven on it.

What cannot be told is refused with a sentence: a number under a wrong name would be worse than no
picture. Axes: B batch, T tokens, C width of the model, M width of the feed-forward.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.config import NormKind, NormPlace, Shape, Stack
from model.hub.attention import Attended
from model.hub.feed_forward import FeedForwardParts, feed_forward_parts
from model.hub.layers import Layer
from model.hub.probe import CLOSE, Call, Probe, is_norm, is_rotary, is_table, near
from model.recorder import Place


@dataclass(frozen=True, eq=False)
class NormPart:
    """A norm: x to (x - mean)/deviation · gamma + beta."""

    name: str  # decoder.3.self.norm
    module: nn.Module
    kind: NormKind
    epsilon: float
    offset: float  # added to the module's weight to make gamma: 1 where the module keeps gamma - 1


@dataclass(frozen=True, eq=False)
class AttentionPart:
    """An attention sub-layer: where the library calls the attention function, and W_O."""

    place: Place
    module: nn.Module
    output: nn.Module  # (B, T, H·D) to (B, T, C)
    heads: int
    key_heads: int
    head_width: int
    norm: NormPart


@dataclass(frozen=True, eq=False)
class FeedForwardPart:
    """A feed-forward sub-layer."""

    name: str  # decoder.3.feed_forward
    parts: FeedForwardParts
    norm: NormPart


@dataclass(frozen=True, eq=False)
class BlockPart:
    """One layer: its sub-layers in order."""

    module: nn.Module
    attentions: tuple[AttentionPart, ...]
    feed_forward: FeedForwardPart | None


@dataclass(frozen=True, eq=False)
class StackPart:
    """One stack: what it looks up, its layers, the norms around them."""

    stack: Stack
    tokens: nn.Module
    token_factor: float  # what the rows of the token table are multiplied by
    positions: nn.Module | None
    first_position: int  # the row of position 0 in a table of positions
    segments: nn.Module | None
    embedding_norm: NormPart | None
    blocks: tuple[BlockPart, ...]
    final_norm: NormPart | None
    norm_place: NormPlace
    parallel: bool  # attention and feed-forward read the same state, and both are added


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The parts of a model in order of execution."""

    shape: Shape
    width: int
    stacks: tuple[StackPart, ...]
    rotary: tuple[nn.Module, ...]

    def attentions(self) -> tuple[AttentionPart, ...]:
        return tuple(
            part for stack in self.stacks for block in stack.blocks for part in block.attentions
        )


def anatomy(model: nn.Module, found: Probe, shape: Shape) -> Anatomy:
    """The anatomy of a model from its probe. Raises ValueError for one that cannot be read."""
    attended = list(found.attended())
    if not attended:
        raise ValueError("none of its layers goes through the library's attention interface")
    if len({id(event.module) for _, event in attended}) < len(attended):
        raise ValueError("some of its layers share one set of weights, and are run several times")
    table = _tables(found)[0].gave
    width = table.shape[-1]
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    placed = _placed(attended, found, shape)
    layers = _layers(placed, found, lists)
    stacks: list[StackPart] = []
    for stack in ("encoder", "decoder"):
        own = [layer for layer in layers if layer.attended[0][1].stack == stack]
        if own:
            stacks.append(_stack(stack, own, found, width))
    rotary = {id(call.module): call.module for _, call in found.calls() if is_rotary(call.module)}
    return Anatomy(shape, width, tuple(stacks), tuple(rotary.values()))


def _layers(
    placed: Sequence[tuple[int, Place, Attended]], found: Probe, lists: Sequence[nn.ModuleList]
) -> list[Layer]:
    """The layers in order, each with what ran in it."""
    blocks: dict[int, nn.Module] = {}
    attended: dict[int, list[tuple[int, Place, Attended]]] = {}
    for at, place, event in placed:
        block = _block_of(event.module, lists)
        blocks[id(block)] = block
        attended.setdefault(id(block), []).append((at, place, event))
    home = {id(part): key for key, block in blocks.items() for part in block.modules()}
    inside: dict[int | None, list[tuple[int, Call]]] = {}
    for at, call in found.calls():
        inside.setdefault(home.get(id(call.module)), []).append((at, call))
    return [Layer(block, attended[key], inside.get(key, [])) for key, block in blocks.items()]


def _placed(
    attended: Sequence[tuple[int, Attended]], found: Probe, shape: Shape
) -> list[tuple[int, Place, Attended]]:
    """Where each call of the attention function stands, told by the lengths of both sequences."""
    counted: dict[tuple[str, str], int] = {}
    placed = []
    for at, event in attended:
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
        placed.append((at, place, event))
    return placed


def _looks_back_only(event: Attended) -> bool:
    if event.mask is None:
        return event.causal
    queries, keys = event.query.shape[-2], event.key.shape[-2]
    later = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    return not bool(event.mask.expand(*event.mask.shape[:-2], queries, keys)[..., later].any())


def _block_of(module: nn.Module, lists: Sequence[nn.ModuleList]) -> nn.Module:
    """The layer that an attention module belongs to: the element of the outermost list around it."""
    for parts in lists:  # outer lists come first
        for part in parts:
            if any(inner is module for inner in part.modules()):
                return part
    raise ValueError("its layers are not a list of layers")


def _stack(
    stack: Stack,
    layers: Sequence[Layer],
    found: Probe,
    width: int,
) -> StackPart:
    length = found.target if found.target and stack == "decoder" else found.source
    inside = {id(part) for layer in layers for part in layer.module.modules()}
    first = min(layer.span[0] for layer in layers)
    last = max(layer.span[1] for layer in layers)
    outside = [
        (at, call)
        for at, call in found.calls()
        if id(call.module) not in inside and call.gave.ndim == 3 and call.gave.shape[1] == length
    ]
    norms_before = [call for at, call in outside if at < first and _is_wide_norm(call, width)]
    norms_after = [call for at, call in outside if at > last and _is_wide_norm(call, width)]
    if len(norms_before) > 1 or len(norms_after) > 1:
        raise ValueError(f"it has several norms before or after the layers of its {stack}")
    layouts = {layer.layout() for layer in layers}
    if len(layouts) > 1:
        raise ValueError("its layers are built in different ways")
    place, parallel = layouts.pop()
    parts = tuple(_block(stack, number, layer, width) for number, layer in enumerate(layers))
    tokens, positions, segments = _looked_up(found, stack, length, first)
    entered = norms_before[0].read if norms_before else layers[0].entered(place)
    factor = _token_factor(tokens, positions, segments, entered, width)
    return StackPart(
        stack=stack,
        tokens=tokens.module,
        token_factor=factor,
        positions=None if positions is None else positions.module,
        first_position=0 if positions is None else _first_row(positions),
        segments=None if segments is None else segments.module,
        embedding_norm=_norm(norms_before[0], f"{stack}.embedding.norm") if norms_before else None,
        blocks=parts,
        final_norm=_norm(norms_after[0], f"{stack}.final.norm") if norms_after else None,
        norm_place=place,
        parallel=parallel,
    )


def _is_wide_norm(call: Call, width: int) -> bool:
    return is_norm(call.module) and call.gave.shape[-1] == width


def _block(stack: Stack, number: int, layer: Layer, width: int) -> BlockPart:
    outputs, feeds = layer.sublayers()
    norms = [call for _, call in layer.norms]
    norms += norms[:1] * (len(outputs) + bool(feeds) - len(norms))  # one norm for both: Phi
    parts = []
    for (_, place, event), output, norm in zip(layer.attended, outputs, norms, strict=False):
        if output.gave.shape[-1] != width:
            raise ValueError(f"the output matrix of {place.name} is not as wide as the model")
        parts.append(
            AttentionPart(
                place=place,
                module=event.module,
                output=output.module,
                heads=event.query.shape[1],
                key_heads=event.key.shape[1],
                head_width=event.query.shape[-1],
                norm=_norm(norm, f"{place.name}.norm"),
            )
        )
    feed_forward = None
    if feeds:
        name = f"{stack}.{number}.feed_forward"
        norm_part = _norm(norms[len(outputs)], f"{name}.norm")
        feed_forward = FeedForwardPart(name, feed_forward_parts(feeds), norm_part)
    return BlockPart(layer.module, tuple(parts), feed_forward)


def _norm(call: Call, name: str) -> NormPart:
    """What a norm computes, proven on what it read and gave. Raises ValueError otherwise."""
    module, x = call.module, call.read
    weight = getattr(module, "weight", None)
    epsilons = [getattr(module, name, None) for name in ("eps", "variance_epsilon", "epsilon")]
    epsilon = next((float(value) for value in epsilons if isinstance(value, float | int)), None)
    if x is None or not isinstance(weight, Tensor) or epsilon is None:
        raise ValueError(f"its {name} ({type(module).__name__}) cannot be read")
    wide, beta = x.double(), getattr(module, "bias", None)
    size, found = max(float(call.gave.abs().max()), 1e-6), []
    kinds: tuple[NormKind, ...] = ("layer", "rms")
    for kind in kinds:
        centred = wide - wide.mean(-1, keepdim=True) if kind == "layer" else wide
        normed = centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
        for offset in (0.0, 1.0):
            made = normed * (weight.double() + offset) + (0.0 if beta is None else beta.double())
            apart = float((made - call.gave).abs().max()) / size
            found.append((apart, NormPart(name, module, kind, epsilon, offset)))
    apart, nearest = min(found, key=lambda pair: pair[0])
    if apart > CLOSE:
        kind_name = type(module).__name__
        raise ValueError(f"its {name} ({kind_name}) is neither a layer norm nor an RMS norm")
    return nearest


def _tables(found: Probe) -> list[Call]:
    return [call for _, call in found.calls() if is_table(call.module)]


def _looked_up(
    found: Probe, stack: Stack, length: int, first: int
) -> tuple[Call, Call | None, Call | None]:
    """What a stack looks up before its first layer: tokens, positions, segments."""
    before = [
        call
        for at, call in found.calls()
        if at < first and is_table(call.module) and call.gave.shape[-2] == length
    ]
    roles: dict[str, Call] = {}
    for call in before:
        role = _role(call.name)
        if role in roles and roles[role].module is not call.module:
            raise ValueError(f"its {stack} looks up {role} in two tables")
        roles[role] = call
    if "tokens" not in roles:
        raise ValueError(f"no token table was found in its {stack}")
    return roles["tokens"], roles.get("positions"), roles.get("segments")


def _role(name: str) -> str:
    last = name.rpartition(".")[2].lower()
    if "pos" in last or last == "wpe":
        return "positions"
    return "segments" if "type" in last or "segment" in last else "tokens"


def _token_factor(
    tokens: Call, positions: Call | None, segments: Call | None, entered: Tensor | None, width: int
) -> float:
    """1, or the root of the width, whichever makes the sum of what was looked up the first state."""
    if entered is None:
        raise ValueError("what its first layer reads was not seen")
    weight = getattr(tokens.module, "weight", None)
    if not isinstance(weight, Tensor) or weight.shape[-1] != width or tokens.read is None:
        raise ValueError("its token table is not as wide as its layers")
    rows = weight[tokens.read]
    added = sum((call.gave for call in (positions, segments) if call is not None), torch.zeros(1))
    for factor in (1.0, math.sqrt(width)):
        if near(rows * factor + added, entered):
            return factor
    raise ValueError("its first layer reads more than tokens, positions and segments added up")


def _first_row(positions: Call) -> int:
    """The row of its table that the first position uses; -1 where positions are no table."""
    table = getattr(positions.module, "weight", None)
    if not isinstance(table, Tensor):
        return -1
    first = positions.gave.reshape(-1, positions.gave.shape[-1])[0]
    return int((table - first).abs().amax(-1).argmin())
