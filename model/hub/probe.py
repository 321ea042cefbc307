"""One pass of a new model that records the order, the input and the output of each part.

The model's anatomy is read from this, so that no family of models has to be described by hand.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.hub.attention import Attended, witnessed

CLOSE = 1e-4  # of the largest number: what rounding in single precision explains


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a part, with its first input and its first output."""

    name: str  # its path inside the model
    module: nn.Module
    read: Tensor | None
    gave: Tensor


Event = Call | Attended


@dataclass(frozen=True, eq=False)
class Probe:
    """The events of one pass in order, and its result: logits, or an encoder's last state."""

    events: tuple[Event, ...]
    source: int  # tokens of the text
    target: int  # tokens of the decoder's input in an encoder–decoder; else 0
    result: Tensor  # (1, T, V) or (1, S, C)

    def calls(self) -> Iterator[tuple[int, Call]]:
        """Every call with its place in the order."""
        return ((at, event) for at, event in enumerate(self.events) if isinstance(event, Call))

    def attended(self) -> Iterator[tuple[int, Attended]]:
        """Every call of the attention function with its place in the order."""
        return ((at, event) for at, event in enumerate(self.events) if isinstance(event, Attended))


def is_map(module: nn.Module) -> bool:
    """Whether a part is a linear map (GPT-2's is called Conv1D, its matrix lies on its side)."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def is_norm(module: nn.Module) -> bool:
    return type(module).__name__.endswith("Norm") and hasattr(module, "weight")


def is_table(module: nn.Module) -> bool:
    """Whether a part is an embedding: of tokens, positions, segments."""
    return type(module).__name__.endswith("Embedding") and not is_rotary(module)


def is_rotary(module: nn.Module) -> bool:
    return type(module).__name__.endswith("RotaryEmbedding")


def probe(model: nn.Module, run: Callable[[], Tensor], *, source: int, target: int) -> Probe:
    """Runs the model once and records each linear map, norm, embedding and attention function."""
    events: list[object] = []
    with _watched(model, events), witnessed(events), torch.inference_mode():
        result = run()
    known = tuple(event for event in events if isinstance(event, Call | Attended))
    return Probe(known, source, target, result)


@contextmanager
def _watched(model: nn.Module, events: list[object]) -> Iterator[None]:
    def watch(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, read: tuple[object, ...], gave: object) -> None:
            first = gave[0] if isinstance(gave, tuple) else gave
            given = next((value for value in read if isinstance(value, Tensor)), None)
            if isinstance(first, Tensor):
                events.append(Call(name, module, given, first))

        return hook

    kinds = (is_map, is_norm, is_table, is_rotary)
    hooks = [
        module.register_forward_hook(watch(name))
        for name, module in model.named_modules()
        if any(kind(module) for kind in kinds)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def near(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal up to rounding, by the size of the second's largest number."""
    size = max(float(other.abs().max()), 1e-6)
    return bool((one.double() - other.double()).abs().max() <= CLOSE * size)
