"""The parts of a change as a short list, each with the change that is left without it. Pure."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from model.nn.intervention import Intervention
from model.nn.places import head_label, layer_label

FILLS = (-math.inf, -1e9, -1e20, 0.0)  # what is offered for a masked score
COUNTERFACTUAL = "A counterfactual: the model was not trained with this change."
LISTED = 4  # members of a set that are named one by one; more are counted


@dataclass(frozen=True)
class Part:
    """One thing that is changed, in words, and the change without it."""

    words: str
    without: Intervention


def parts(change: Intervention, tokens: tuple[str, ...] = ()) -> tuple[Part, ...]:
    """Everything that differs from the unchanged model. tokens: the labels of the text's tokens."""
    return tuple(_parts(change, tokens))


def fill_name(fill: float) -> str:
    """A fill as it stands beside pictures: "−∞", "−1e9", "0"."""
    if math.isinf(fill):
        return "−∞"
    text = f"{abs(fill):g}".replace("e+0", "e").replace("e+", "e")
    return f"−{text}" if fill < 0 else text


def _parts(change: Intervention, tokens: tuple[str, ...]) -> Iterator[Part]:
    if change.scale is not None:
        words = "scores not scaled" if change.scale == 1 else f"scores × {change.scale:g}"
        yield Part(words, replace(change, scale=None))
    if change.mask != "model":
        words = "no mask" if change.mask == "none" else "causal mask"
        yield Part(words, replace(change, mask="model"))
    labels = dict(enumerate(f" {token}" for token in tokens))
    yield from _each(
        change,
        "hidden",
        change.hidden,
        "tokens hidden",
        lambda at: f"{at}{labels.get(at, '')} hidden",
    )
    yield from _each(
        change,
        "blocked",
        change.blocked,
        "edges cut",
        lambda edge: "{} cannot see {}".format(*edge),
    )
    if change.fill != -math.inf:
        yield Part(f"masked = {fill_name(change.fill)}", replace(change, fill=-math.inf))
    if not change.positions:
        yield Part("positions off", replace(change, positions=True))
    for place in sorted({place for place, _ in change.ablated}):
        heads = frozenset(head for head in change.ablated if head[0] == place)
        counted = f"heads of {layer_label(place)} off"
        yield from _each(
            change, "ablated", heads, counted, lambda head: f"{head_label(head, full=True)} off"
        )
    if change.dropout:
        words = f"dropout {change.dropout:g}, seed {change.seed}"
        yield Part(words, replace(change, dropout=0.0, seed=0))
    if change.only is not None:
        names = ", ".join(map(layer_label, sorted(change.only)))
        # Edges of a model with two stacks must name their sub-layers, so they go too.
        yield Part(f"only in {names}", replace(change, only=None, blocked=frozenset()))


def _each(
    change: Intervention,
    field: str,
    members: frozenset[Any],
    counted: str,
    named: Callable[[Any], str],
) -> Iterator[Part]:
    """Members of a set field, one by one; all in one part where they are many."""
    whole = getattr(change, field)
    if len(members) > LISTED:
        yield Part(f"{len(members)} {counted}", replace(change, **{field: whole - members}))
        return
    for member in sorted(members):
        yield Part(named(member), replace(change, **{field: whole - {member}}))
