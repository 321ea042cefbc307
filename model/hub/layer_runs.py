"""The layers of a hub model in order, each time they run in a pass."""

from collections.abc import Sequence

import torch
from torch import nn

from model.hub.attention import Attended
from model.hub.layer_calls import Layer
from model.hub.probe import Call, Probe
from model.nn.config import Shape, Stack
from model.nn.places import Place


def layers_of(model: nn.Module, found: Probe, shape: Shape) -> list[Layer]:
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
    inside: dict[tuple[int, int], list[Call]] = {}
    for call in found.calls:
        if id(call.module) in home:
            inside.setdefault(run_of(home[id(call.module)], call.at), []).append(call)
    return [
        Layer(
            blocks[id(own[0][1].module)],
            own,
            inside.get(key, []),
            key[1],
            max(len(ends[key[0]]), 1),
        )
        for key, own in attended.items()
    ]


def attend_in_all(model: nn.Module, layers: Sequence[Layer]) -> None:
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
