"""Where recorded calls stand in a network that nobody described: stacks, layers and names."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from model.capture.watch import Call
from model.nn.config import Stack
from model.nn.places import Place
from model.trace.records import Attention


def placed(calls: Sequence[Call]) -> tuple[Attention, ...]:
    """The records in order of execution, each with its stack, its layer and the name of its module.

    Self-attention before the first cross-attention belongs to the encoder, unless it is causal, shares a
    module with cross-attention, or reads another number of tokens in the same network. Without
    cross-attention, the network is a decoder where some of its attention is causal.
    """
    stacks = _stacks(calls)
    modules, layers = Counter[str](), Counter[tuple[Stack, bool]]()
    found = []
    for call, stack in zip(calls, stacks, strict=True):
        modules[call.module] += 1
        times = modules[call.module]
        crosses = call.record.kind == "cross"
        layer = layers[stack, crosses]
        if crosses:  # beside the self-attention that ran before it
            layer = max(layer, layers[stack, False] - 1)
        layers[stack, crosses] = layer + 1
        module = call.module if times == 1 else f"{call.module}#{times}"
        place = Place(stack, layer, call.record.kind, module)
        found.append(replace(call.record, place=place))
    return tuple(found)


def _stacks(calls: Sequence[Call]) -> Iterator[Stack]:
    kinds = [call.record.kind for call in calls]
    if "cross" not in kinds:
        for _ in kinds:
            yield "decoder" if "causal" in kinds else "encoder"
        return
    first = kinds.index("cross")
    layer = calls[first].module.rpartition(".")[0]
    keys = calls[first].record.key.shape[1]
    reading = 0
    for call in calls[:first]:
        beside = call.module.rpartition(".")[0] == layer and layer != ""
        another = "." in call.module and layer != "" and _network(call.module) != _network(layer)
        if call.record.kind == "causal" or beside:
            break
        if not another and call.record.key.shape[1] != keys:
            break
        reading += 1
    for number in range(len(calls)):
        yield "encoder" if number < reading else "decoder"


def _network(module: str) -> str:
    """The part of the whole that holds a module: "encoder" of "encoder.block.0"."""
    return module.partition(".")[0]
