"""One pass of a new model that records the order, the input and the output of each part.

The model's anatomy is read from this, so that no family of models has to be described by hand.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from model.hub.attention import Attended, witnessed

CLOSE = 1e-4  # of the largest number: what rounding in single precision explains


@dataclass(frozen=True, eq=False)
class Call:
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

    calls: tuple[Call, ...]
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
    """Runs the model once and records each of its parts and each call of the attention function."""
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
            events.append(Call(len(events), name, module, given, first, gave))

    hooks = [(module, partial(note, name)) for name, module in model.named_modules() if name]
    with hooked(hooks, named=True), witnessed(events), torch.inference_mode():
        run()
    calls = tuple(event for event in events if isinstance(event, Call))
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
