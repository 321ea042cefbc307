"""Names of norms, sub-layers and states of the stream, as lists and pictures show them. Pure."""

from model.nn.config import NormPlace, Stack
from model.trace.trace import Trace

_SUBLAYERS = {"self": "self-attention", "cross": "cross-attention", "feed_forward": "feed-forward"}
_ADDED_BY = _SUBLAYERS | {"self": "attention"}


def sublayer_name(name: str, *, stacks: int = 1) -> str:
    """`decoder.0.feed_forward` as "Layer 0, feed-forward"; with its stack where there are two."""
    stack, layer, kind, *_ = name.split(".")
    return _of_stack(f"Layer {layer}, {_SUBLAYERS[kind]}", stack, stacks)


def norm_name(name: str, place: NormPlace, *, stacks: int = 1) -> str:
    """A norm by where it stands: "Layer 0, before self-attention", "After the last layer"."""
    stack, layer, kind, *_ = name.split(".")
    if layer == "embedding":
        words = "After the embeddings"
    elif layer == "final":
        words = "After the last layer"
    else:
        words = f"Layer {layer}, {'before' if place == 'pre' else 'after'} {_SUBLAYERS[kind]}"
    return _of_stack(words, stack, stacks)


def state_names(trace: Trace, stack: Stack) -> tuple[str, ...]:
    """One name for each state of a stack's stream: "embedding", "L0 attention", and so on."""
    places = [norm.name.split(".") for norm in trace.norms if norm.name.startswith(f"{stack}.")]
    sublayers = [
        f"L{layer} {_ADDED_BY[kind]}"
        for _, layer, kind, *_ in places
        if layer.isdigit() and kind in _ADDED_BY
    ]
    return ("embedding", *sublayers)


def _of_stack(words: str, stack: str, stacks: int) -> str:
    return words if stacks == 1 else f"{stack.capitalize()}: {words[0].lower()}{words[1:]}"
