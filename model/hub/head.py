"""What the library does after the layers: the model's own code for its logits, run on given states.

So a factor, a bias or a cap on the logits is computed by the library itself.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from model.hub.parts import StackPart


def headless(body: Any) -> str:
    """Why a model without an output matrix has no logits."""
    return (
        f"it runs as {type(body).__name__}, which has no matrix that makes logits of tokens "
        "(AutoModelForCausalLM, for instance, has one)"
    )


def writes_logits(body: Any) -> bool:
    """Whether a model of the library has an output matrix."""
    return body.get_output_embeddings() is not None


def head_of(body: nn.Module, stacks: Sequence[StackPart]) -> Callable[[Tensor], Tensor]:
    """The function from final states (1, T, C) to logits (1, T, V). Raises the library's own error where its
    code needs more than the states."""

    def logits(states: Tensor) -> Tensor:
        layers = {id(block.module) for stack in stacks for block in stack.blocks}
        head = copy(body)  # its parts are shared, the list of them is its own
        head._modules = {
            name: _Given(states) if _holds(part, layers) else part
            for name, part in body._modules.items()
        }
        ids = torch.zeros(states.shape[:2], dtype=torch.long, device=states.device)
        fed = {"decoder_input_ids": ids} if len(stacks) > 1 else {}
        made: Tensor = head(input_ids=ids, use_cache=False, **fed).logits
        return made

    return logits


def _holds(part: nn.Module | None, layers: set[int]) -> bool:
    return part is not None and any(id(inner) in layers for inner in part.modules())


class _Given(nn.Module):
    """Takes the place of the layers and of the parts that hold them: whatever it is called with, it returns
    the given states."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self._states = states

    def forward(self, *read: object, **named: object) -> "_Output":
        return _Output(self._states)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return self


class _Output:
    """The output of a stack: its states. Any other attribute is None."""

    def __init__(self, states: Tensor) -> None:
        self.last_hidden_state = states

    def __getitem__(self, number: int) -> Tensor | None:
        return self.last_hidden_state if number == 0 else None

    def __getattr__(self, name: str) -> None:
        return None
