"""The activation of a feed-forward layer, computed again as the model itself computes it."""

from model.nn.config import Activation
from model.trace.arrays import Array, read_only


def activated(activation: Activation, before: Array) -> Array:
    """(token, d_ff): the activation as the models themselves compute it, in float32."""
    import torch  # torch takes seconds to import: pages are drawn first

    from model.nn.layers import ACTIVATIONS

    with torch.inference_mode():
        return read_only(ACTIVATIONS[activation](torch.tensor(before)).numpy())
