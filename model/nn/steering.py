"""A direction added to the residual stream.

Sources: Turner et al. 2023, "Activation Addition"; Rimsky et al. 2024, "Steering Llama 2 via Contrastive
Activation Addition".
"""

from dataclasses import dataclass

import numpy as np
import torch

from model.nn.intervention import UNCHANGED, Intervention
from model.nn.patches import Hooks
from model.system.border import at_border, check_fields


@dataclass(frozen=True, eq=False)
class Steering:
    """A multiple of a direction, added to the stream that a layer reads, at every token.

    `Model.trace`, `Model.generate`, `trace_all` and `measure` take it where they take an intervention; the
    traces do not name it.

    >>> from model.nn.steering import Steering
    >>> toward = trace.residual["decoder"][2][1]  # (C,): what the stream holds at a token
    >>> steering = Steering(toward, "decoder.1.self", multiple=2.0)
    >>> steering, [*steering.hooks(model.device)]
    (<Steering before decoder.1.self: 2 × 256 numbers>, [('stream', 'decoder.1.self')])
    >>> steered = model.trace(trace.text, intervention=steering)
    >>> bool((steered.logits != trace.logits).any())
    True
    """

    toward: "np.typing.NDArray[np.float32]"  # (C,), as `direction` gives it
    place: str | int  # the layer's first attention sub-layer, or the number of the layer
    multiple: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"<Steering before {self.place}: {self.multiple:g} × {len(self.toward)} numbers>"

    @at_border
    def hooks(self, device: torch.device) -> Hooks:
        """What adds it while a pass runs."""
        added = torch.tensor(np.asarray(self.toward), device=device) * self.multiple
        return {("stream", str(self.place)): lambda x: x + added.to(x.dtype)}


PassChange = Intervention | Steering  # what holds in a pass


def parted(change: PassChange, device: torch.device) -> tuple[Intervention, tuple[Hooks, ...]]:
    """What a recorder carries of a change."""
    if isinstance(change, Intervention):
        return change, ()
    return UNCHANGED, (change.hooks(device),)
