"""A run's state in one safetensors file: tensors and JSON, so that opening it runs no code."""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor

State = dict[str, dict[str, Tensor]]  # the module's, and each checkpoint's by its step
_MODULE, _OPTIMIZER, _FACTS = "module", "optimizer", "run"


def write(
    file: Path, states: State, optimizer: torch.optim.Optimizer, facts: dict[str, object]
) -> None:
    """Writes weights, the optimizer's state, and facts that JSON can hold."""
    kept = optimizer.state_dict()
    tensors = {
        f"{part}/{name}": value.detach().clone()  # a file shares no memory between its tensors
        for part, state in states.items()
        for name, value in state.items()
    }
    for index, moments in kept["state"].items():
        tensors |= {f"{_OPTIMIZER}/{index}/{name}": value for name, value in moments.items()}
    told = json.dumps({"groups": kept["param_groups"], "facts": facts})
    safetensors.torch.save_file(tensors, file, {_FACTS: told})


def read(
    file: Path, optimizer: torch.optim.Optimizer, device: torch.device
) -> tuple[State, dict[str, Any]]:
    """The weights and facts of a file. The optimizer gets its state.

    Raises FileNotFoundError, SafetensorError for a damaged file, and ValueError where the
    optimizer's state is that of another model.
    """
    if not file.is_file():
        raise FileNotFoundError(file)
    states: State = {}
    moments: dict[int, dict[str, Tensor]] = {}
    with safe_open(file, "pt") as opened:
        told = json.loads(opened.metadata()[_FACTS])
        for name in opened.keys():  # noqa: SIM118 - the file is no mapping
            part, rest = name.split("/", 1)
            value = opened.get_tensor(name)
            if part == _OPTIMIZER:
                index, moment = rest.split("/")
                moments.setdefault(int(index), {})[moment] = value
            else:
                states.setdefault(part, {})[rest] = value.to(device if part == _MODULE else "cpu")
    optimizer.load_state_dict({"state": moments, "param_groups": told["groups"]})
    return states, told["facts"]
