"""Names of norms, sub-layers and states of the stream, as lists and pictures show them. Pure."""

from collections.abc import Sequence

from model.analysis.stream.stream import sub_layers
from model.nn.config import Stack, TransformerConfig
from model.nn.places import Kind, Place, head_label, head_named, layer_label
from model.trace.trace import Trace
from viz.notation.words import sentences_of

say = sentences_of("notation.names")

SUBLAYERS: dict[Kind, str] = {
    "self": "self-attention",
    "cross": "cross-attention",
    "feed_forward": "feed-forward",
}
SHORT: dict[Kind, str] = {"feed_forward": "FFN"}  # beside the cells of a picture
ADDED_BY: dict[Kind, str] = SUBLAYERS | {"self": "attention"}


def sublayer_name(name: str, *, stacks: int = 1) -> str:
    """`decoder.0.feed_forward` as "Layer 0, feed-forward"; with its stack where there are two."""
    place = Place.named(name)
    return _of_stack(f"Layer {place.layer}, {SUBLAYERS[place.kind]}", place.stack, stacks)


def norm_name(name: str, config: TransformerConfig, *, stacks: int = 1) -> str:
    """A norm by where it stands: "Layer 0, before self-attention", "After the last layer"."""
    place = Place.named(name)
    if place.kind == "embedding":
        words = "After the embeddings"
    elif place.kind == "final":
        words = say("after_last_layer")
    else:
        before = "after" if config.norms_sum or name == place.after else "before"
        words = f"Layer {place.layer}, {before} {SUBLAYERS[place.kind]}"
    return _of_stack(words, place.stack, stacks)


def part_name(part: str, *, short: bool = False) -> str:
    """What wrote to the stream: "token", "L0H2", "L0 feed-forward" or, short, "L0 FFN", "biases"."""
    head = head_named(part)
    if head is not None:
        return head_label(head)
    if "." not in part:
        return "biases" if part == "bias" else part
    place = Place.named(part)
    return f"{place.full_label} {(SHORT if short else ADDED_BY)[place.kind]}"


def state_names(trace: Trace, stack: Stack) -> tuple[str, ...]:
    """One name for each state of a stack's stream: "embedding", "L0 attention", and so on."""
    places = map(Place.named, sub_layers(trace, stack))
    sublayers = [f"{place.label} {ADDED_BY[place.kind]}" for place in places]
    return ("embedding", *sublayers)


def modules_of(trace: Trace) -> dict[str, str]:
    """The names of somebody's own modules, by layer: empty for a model of this app."""
    return {one.name: one.module for one in trace.attention if one.module}


def kinds_of_layers(trace: Trace) -> str:
    """How far the layers of a model look, where they differ: "L0 and L1 read a window of 4 keys,
    L2 reads all keys." """
    of_window: dict[int | None, list[str]] = {}
    for attention in trace.attention:
        if attention.kind != "cross":
            of_window.setdefault(attention.window, []).append(layer_label(attention.name))
    if len(of_window) < 2:
        return ""
    parts = (
        f"{listed(labels)} {'read' if len(labels) > 1 else 'reads'} "
        + ("all keys" if window is None else f"a window of {window} keys")
        for window, labels in of_window.items()
    )
    return f"{', '.join(parts)}."


def listed(parts: Sequence[str]) -> str:
    """a, b and c; nothing where there is nothing."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _of_stack(words: str, stack: str, stacks: int) -> str:
    return words if stacks == 1 else f"{stack.capitalize()}: {words[0].lower()}{words[1:]}"
