"""The embedding tables of a Hugging Face model: tokens, positions, segments.

They are found by their names, and checked against the input of the first layer.
"""

import math

from torch import Tensor

from model.hub.probe import Call, Probe, is_table, near
from model.nn.config import Stack


def model_width(found: Probe) -> int:
    """The width of the first embedding. Raises ValueError where there is none."""
    for call in found.calls:
        if is_table(call.module):
            return call.gave.shape[-1]
    raise ValueError("it does not look its tokens up in a table")


def looked_up(
    found: Probe, stack: Stack, length: int, first: int
) -> tuple[Call, Call | None, Call | None]:
    """What a stack looks up before its first layer: tokens, positions, segments."""
    before = [
        call
        for call in found.calls
        if call.at < first
        and is_table(call.module)
        and call.gives_one
        and call.gave.shape[-2] == length
        and call.gave.shape[:-2].numel() == 1  # not a number for each pair of tokens
    ]
    roles: dict[str, Call] = {}
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
    tokens: Call, positions: Call | None, segments: Call | None, entered: Tensor | None
) -> float:
    """The factor of the token embedding in the sum that the first layer, or a norm before it, reads: 1,
    √width (Vaswani et al. 2017), or another."""
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


def first_row(positions: Call) -> int:
    """The row of the table that position 0 uses; -1 where there is no table."""
    table = getattr(positions.module, "weight", None)
    if not isinstance(table, Tensor):
        return -1
    first = positions.gave.reshape(-1, positions.gave.shape[-1])[0]
    return int((table - first).abs().amax(-1).argmin())
