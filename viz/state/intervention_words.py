"""The parts of a change as a short list, each with the change that is left without it. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from model.nn.intervention import Intervention

FILLS = (-math.inf, -1e9, -1e20, 0.0)  # what is offered for a masked score
COUNTERFACTUAL = "A counterfactual: the model was not trained this way. This shows what it loses."
LISTED = 4  # members of a set that are named one by one; more are counted


@dataclass(frozen=True)
class Part:
    """One thing that is changed, in words, and the change without it."""

    words: str
    without: Intervention


def parts(change: Intervention, tokens: tuple[str, ...] = ()) -> tuple[Part, ...]:
    """Everything that differs from the unchanged model. tokens: the labels of the text's tokens."""
    return (
        *_scale(change),
        *_mask(change),
        *_hidden(change, tokens),
        *_blocked(change),
        *_fill(change),
        *_positions(change),
        *_ablated(change),
        *_dropout(change),
        *_only(change),
    )


def fill_name(fill: float) -> str:
    """A fill as it stands beside pictures: "−∞", "−1e9", "0"."""
    if math.isinf(fill):
        return "−∞"
    text = f"{abs(fill):g}".replace("e+0", "e").replace("e+", "e")
    return f"−{text}" if fill < 0 else text


def layer_name(place: str) -> str:
    """`decoder.3.self` as "L3" of a decoder, "encoder L3", or "L3 cross"."""
    stack, layer, kind = place.split(".")
    before = "encoder " if stack == "encoder" else ""
    return f"{before}L{layer}{' cross' if kind == 'cross' else ''}"


def _scale(change: Intervention) -> Iterator[Part]:
    if change.scale is not None:
        words = "scores not scaled" if change.scale == 1 else f"scores × {change.scale:g}"
        yield Part(words, replace(change, scale=None))


def _mask(change: Intervention) -> Iterator[Part]:
    if change.mask != "model":
        words = "no mask" if change.mask == "none" else "causal mask"
        yield Part(words, replace(change, mask="model"))


def _hidden(change: Intervention, tokens: tuple[str, ...]) -> Iterator[Part]:
    if len(change.hidden) > LISTED:
        yield Part(f"{len(change.hidden)} tokens hidden", replace(change, hidden=frozenset()))
        return
    for position in sorted(change.hidden):
        text = f" {tokens[position]}" if position < len(tokens) else ""
        yield Part(f"{position}{text} hidden", replace(change, hidden=change.hidden - {position}))


def _blocked(change: Intervention) -> Iterator[Part]:
    if len(change.blocked) > LISTED:
        yield Part(f"{len(change.blocked)} edges cut", replace(change, blocked=frozenset()))
        return
    for query, key in sorted(change.blocked):
        left = replace(change, blocked=change.blocked - {(query, key)})
        yield Part(f"{query} cannot see {key}", left)


def _fill(change: Intervention) -> Iterator[Part]:
    if change.fill != -math.inf:
        yield Part(f"masked = {fill_name(change.fill)}", replace(change, fill=-math.inf))


def _positions(change: Intervention) -> Iterator[Part]:
    if not change.positions:
        yield Part("positions off", replace(change, positions=True))


def _ablated(change: Intervention) -> Iterator[Part]:
    for place in sorted({place for place, _ in change.ablated}):
        heads = frozenset(member for member in change.ablated if member[0] == place)
        name = layer_name(place)
        if len(heads) > LISTED:
            left = replace(change, ablated=change.ablated - heads)
            yield Part(f"{len(heads)} heads of {name} off", left)
            continue
        for member in sorted(heads):
            left = replace(change, ablated=change.ablated - {member})
            yield Part(f"{name}H{member[1]} off", left)


def _dropout(change: Intervention) -> Iterator[Part]:
    if change.dropout:
        words = f"dropout {change.dropout:g}, seed {change.seed}"
        yield Part(words, replace(change, dropout=0.0, seed=0))


def _only(change: Intervention) -> Iterator[Part]:
    if change.only is not None:
        names = ", ".join(layer_name(place) for place in sorted(change.only))
        # Edges of a model with two stacks must name their sub-layers, so they go too.
        yield Part(f"only in {names}", replace(change, only=None, blocked=frozenset()))
