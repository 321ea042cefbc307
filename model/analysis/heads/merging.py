"""How the outputs of all heads become what their sub-layer writes: side by side, then times W_O."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.heads.contributions import head_results, output_bias
from model.analysis.stream.stream import contributions
from model.system.elsewhere import asked
from model.trace.arrays import Array, read_only
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class Merged:
    """The outputs of the heads of one sub-layer, and what becomes of them."""

    outputs: Array  # (head, token, d_v): zero for an ablated head
    written: Array  # (head, token, d_model): each through its own rows of W_O
    bias: Array  # (d_model,): of W_O; zero where it has none
    recorded: Array  # (token, d_model): what the sub-layer wrote

    @property
    def concatenated(self) -> Array:
        """(token, heads · d_v): the outputs side by side."""
        return read_only(np.concatenate(self.outputs, axis=-1))

    @property
    def total(self) -> Array:
        """(token, d_model): the sum of what the heads write, and the bias."""
        return read_only(self.written.sum(0) + self.bias)

    @property
    def check(self) -> float:
        """Largest |total - recorded|."""
        return float(np.abs(self.total - self.recorded).max())

    def by_identity(self) -> "Merged":
        """The same as if W_O were the identity, without a bias. Raises ValueError where no identity has the
        shape of W_O."""
        heads, _, width = self.outputs.shape
        if heads * width != len(self.bias):
            raise ValueError(
                f"W_O maps {heads * width} numbers to {len(self.bias)} here: no identity does so."
            )
        places = np.eye(heads * width, dtype=np.float32).reshape(heads, width, -1)
        return replace(self, written=self.outputs @ places, bias=np.zeros_like(self.bias))


@asked
def merged(model: "Model", trace: Trace, name: str, tokens: slice = slice(None)) -> Merged:
    """The heads of a sub-layer at some tokens."""
    attention = trace.find(name)
    here = replace(attention, output=attention.output[:, tokens])
    outputs = here.output.copy()
    outputs[list(attention.ablated)] = 0.0
    parts = contributions(trace, attention.stack, model.config.norm_place)
    received = next(part.written for part in parts if part.name == name)
    return Merged(outputs, head_results(model, here), output_bias(model, name), received[tokens])
