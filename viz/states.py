"""Names of the states of the residual stream, as they stand beside pictures. Pure."""

from model.config import Stack
from model.trace import Trace

_SUBLAYERS = {"self": "attention", "cross": "cross-attention", "feed_forward": "feed-forward"}


def state_names(trace: Trace, stack: Stack) -> tuple[str, ...]:
    """One name for each state of a stack's stream: "embedding", "L0 attention", and so on."""
    places = [norm.name.split(".") for norm in trace.norms if norm.name.startswith(f"{stack}.")]
    sublayers = [
        f"L{layer} {_SUBLAYERS[kind]}"
        for _, layer, kind, *_ in places
        if layer.isdigit() and kind in _SUBLAYERS
    ]
    return ("embedding", *sublayers)
