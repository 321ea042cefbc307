"""A direction added to the residual stream.

Sources: Turner et al. 2023, "Activation Addition"; Rimsky et al. 2024, "Steering Llama 2 via Contrastive
Activation Addition".
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.nn.patches import Hooks
from model.system.border import at_border, check_fields

if TYPE_CHECKING:  # pages are drawn first
    import torch


@dataclass(frozen=True, eq=False)
class Steering:
    """A multiple of a direction, added to the stream that a layer reads, at every token.

    `Model.trace`, `Model.generate`, `trace_all` and `measure` take it where they take an intervention; it is
    then the `steering` of the trace's intervention, and `Intervention(ablated=…, steering=…)` changes more
    beside it. Two of the same numbers are equal. Raises ValueError for a direction that is not a row of
    finite numbers.

    >>> from model.nn.steering import Steering
    >>> toward = trace.residual["decoder"][2][1]  # (C,): what the stream holds at a token
    >>> steering = Steering(toward, "decoder.1.self", multiple=2.0)
    >>> steering, [*steering.hooks(model.device)]
    (<Steering before decoder.1.self: 2 × 256 numbers>, [('stream', 'decoder.1.self')])
    >>> steered = model.trace(trace.text, intervention=steering)
    >>> bool((steered.logits != trace.logits).any()), steered.intervention
    (True, Intervention(steering=<Steering before decoder.1.self: 2 × 256 numbers>))
    """

    toward: "np.typing.NDArray[np.float32]"  # (C,), as `direction` gives it
    place: str | int  # the layer's first attention sub-layer, or the number of the layer
    multiple: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        toward = np.array(self.toward, np.float32)  # a copy, which nobody changes
        if toward.ndim != 1 or not np.isfinite(self.multiple * toward).all():
            raise ValueError(
                "A direction is one row of finite numbers, and its multiple is finite."
            )
        toward.flags.writeable = False
        object.__setattr__(self, "toward", toward)

    def __repr__(self) -> str:
        return f"<Steering before {self.place}: {self.multiple:g} × {len(self.toward)} numbers>"

    def _key(self) -> tuple[bytes, str | int, float]:
        return self.toward.tobytes(), self.place, self.multiple

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steering) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _added(self, x: "torch.Tensor") -> "torch.Tensor":
        """A state (…, C) with the multiple of the direction."""
        import torch  # takes seconds

        numbers = torch.from_numpy(self.multiple * self.toward)
        return x + numbers.to(x.device, x.dtype, non_blocking=True)

    @at_border
    def hooks(self, device: "torch.device") -> Hooks:
        """What adds it while a pass runs on a device."""
        return {("stream", str(self.place)): self._added}
