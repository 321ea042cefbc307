"""Which part of a Hugging Face model does what, read from one pass and checked against it.

A model whose parts cannot be told apart is refused with a sentence: a number under a wrong name would be
worse than no picture. Axes: B batch, T tokens, C width of the model.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from model.hub.attention import Attended
from model.hub.embedding_tables import first_row, looked_up, model_width, token_factor
from model.hub.feed_forward import feed_forward_parts
from model.hub.layer_calls import Layer
from model.hub.parts import (
    Anatomy,
    AttentionPart,
    BlockPart,
    FeedForwardPart,
    NormPart,
    StackPart,
)
from model.hub.probe import CLOSE, Call, Probe, is_norm, is_rotary
from model.nn.config import NormKind, Shape, Stack
from model.nn.places import Place


def anatomy(model: nn.Module, found: Probe, shape: Shape) -> Anatomy:
    """The anatomy of a model from its probe. Raises ValueError for one that cannot be read."""
    if not found.attended:
        raise ValueError("none of its layers goes through the library's attention interface")
    if len({id(event.module) for event in found.attended}) < len(found.attended):
        raise ValueError("some of its layers share one set of weights and run several times")
    width = model_width(found)
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    layers = _layers(_placed(found, shape), found, lists)
    stacks: list[StackPart] = []
    for stack in ("encoder", "decoder"):
        own = [layer for layer in layers if layer.attended[0][0].stack == stack]
        if own:
            stacks.append(_stack(stack, own, found, width))
    rotary = {id(call.module): call.module for call in found.calls if is_rotary(call.module)}
    return Anatomy(shape, width, tuple(stacks), tuple(rotary.values()))


def _layers(
    placed: Sequence[tuple[Place, Attended]], found: Probe, lists: Sequence[nn.ModuleList]
) -> list[Layer]:
    """The layers in order, each with what ran in it."""
    blocks: dict[int, nn.Module] = {}
    attended: dict[int, list[tuple[Place, Attended]]] = {}
    for place, event in placed:
        block = _block_of(event.module, lists)
        blocks[id(block)] = block
        attended.setdefault(id(block), []).append((place, event))
    home = {id(part): key for key, block in blocks.items() for part in block.modules()}
    inside: dict[int | None, list[Call]] = {}
    for call in found.calls:
        inside.setdefault(home.get(id(call.module)), []).append(call)
    return [Layer(block, attended[key], inside.get(key, [])) for key, block in blocks.items()]


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


def _block_of(module: nn.Module, lists: Sequence[nn.ModuleList]) -> nn.Module:
    """The layer of an attention module: its element of the outermost list of modules."""
    for parts in lists:  # outer lists come first
        for part in parts:
            if any(inner is module for inner in part.modules()):
                return part
    raise ValueError("its layers are not a list of layers")


def _stack(stack: Stack, layers: Sequence[Layer], found: Probe, width: int) -> StackPart:
    length = found.target if found.target and stack == "decoder" else found.source
    first = min(layer.span[0] for layer in layers)
    embedding_norm, final_norm = _norms_around(stack, layers, found, (length, width))
    layouts = {layer.layout() for layer in layers}
    if len(layouts) > 1:
        raise ValueError("its layers are built in different ways")
    place, parallel = layouts.pop()
    parts = tuple(_block(stack, number, layer, width) for number, layer in enumerate(layers))
    tokens, positions, segments = looked_up(found, stack, length, first)
    entered = layers[0].entered(place) if embedding_norm is None else embedding_norm.read
    factor = token_factor(tokens, positions, segments, entered, width)
    return StackPart(
        stack=stack,
        tokens=tokens.module,
        token_factor=factor,
        positions=None if positions is None else positions.module,
        first_position=0 if positions is None else first_row(positions),
        segments=None if segments is None else segments.module,
        embedding_norm=_named(embedding_norm, Place(stack, None, "embedding").norm),
        blocks=parts,
        final_norm=_named(final_norm, Place(stack, None, "final").norm),
        norm_place=place,
        parallel=parallel,
    )


def _norms_around(
    stack: Stack, layers: Sequence[Layer], found: Probe, size: tuple[int, int]
) -> tuple[Call | None, Call | None]:
    """The norm before the first layer and the one after the last, over states of size (T, C).

    Raises ValueError where several stand there.
    """
    inside = {id(part) for layer in layers for part in layer.module.modules()}
    first = min(layer.span[0] for layer in layers)
    last = max(layer.span[1] for layer in layers)
    norms = [
        call
        for call in found.calls
        if is_norm(call.module) and id(call.module) not in inside
        if call.gave.ndim == 3 and tuple(call.gave.shape[1:]) == size
    ]
    before = [call for call in norms if call.at < first]
    after = [call for call in norms if call.at > last]
    if len(before) > 1 or len(after) > 1:
        raise ValueError(f"it has several norms before or after the layers of its {stack}")
    return next(iter(before), None), next(iter(after), None)


def _named(call: Call | None, name: str) -> NormPart | None:
    return None if call is None else _norm(call, name)


def _block(stack: Stack, number: int, layer: Layer, width: int) -> BlockPart:
    outputs, feeds = layer.sublayers()
    norms = layer.norms
    norms += norms[:1] * (len(outputs) + bool(feeds) - len(norms))  # one norm for both: Phi
    parts = []
    for (place, event), output, norm in zip(layer.attended, outputs, norms, strict=False):
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
                norm=_norm(norm, place.norm),
            )
        )
    feed_forward = None
    if feeds:
        place = Place(stack, number, "feed_forward")
        norm_part = _norm(norms[len(outputs)], place.norm)
        feed_forward = FeedForwardPart(place.name, feed_forward_parts(feeds), norm_part)
    return BlockPart(layer.module, tuple(parts), feed_forward)


def _norm(call: Call, name: str) -> NormPart:
    """The kind of norm, and the offset of γ, that reproduce this norm's output in the probe. Raises
    ValueError where none does."""
    module, weight, epsilon = call.module, call.module.weight, _epsilon(call.module)
    its = f"its {name} ({type(module).__name__})"
    if call.read is None or epsilon is None or not isinstance(weight, Tensor):
        raise ValueError(f"{its} cannot be read")
    kinds: tuple[NormKind, ...] = ("layer", "rms")
    differences = {
        part: _difference(part, weight, call.read, call.gave)
        for kind in kinds
        for offset in (0.0, 1.0)
        for part in [NormPart(name, module, kind, epsilon, offset)]
    }
    nearest = min(differences, key=differences.__getitem__)
    if differences[nearest] > CLOSE:
        raise ValueError(f"{its} is neither a layer norm nor an RMS norm")
    return nearest


def _epsilon(norm: nn.Module) -> float | None:
    """The ε of a norm, under the name that its library gives it."""
    found = [getattr(norm, name, None) for name in ("eps", "variance_epsilon", "epsilon")]
    return next((float(value) for value in found if isinstance(value, float | int)), None)


def _difference(norm: NormPart, weight: Tensor, read: Tensor, gave: Tensor) -> float:
    """How far a norm's output is from the described one's, relative to its largest number."""
    x, beta = read.double(), getattr(norm.module, "bias", None)
    centred = x - x.mean(-1, keepdim=True) if norm.kind == "layer" else x
    normed = centred / (centred.square().mean(-1, keepdim=True) + norm.epsilon).sqrt()
    made = normed * (weight.double() + norm.offset)
    made = made if beta is None else made + beta.double()
    return float((made - gave).abs().max()) / max(float(gave.abs().max()), 1e-6)
