"""What no model runs: a text that is too long, a change of something that the pass does not have."""

from collections.abc import Mapping

from model.nn.intervention import Intervention
from model.nn.recorder import Place
from model.run.protocols import AttentionLayer, Runnable


class TextTooLongError(ValueError):
    """The text has more tokens than the model can read. `.length` and `.context` say how many."""

    def __init__(self, length: int, context: int, name: str) -> None:
        super().__init__(
            f"The text is {length:,} tokens long; {name} reads at most {context:,}. Shorten it."
        )
        self.length = length
        self.context = context


def check_length(length: int, context: int, name: str) -> None:
    """Raises TextTooLongError where a text has more tokens than the model's context."""
    if length > context:
        raise TextTooLongError(length, context, name)


def check_change(
    change: Intervention, name: str, module: Runnable, lengths: tuple[int, int]
) -> None:
    """Raises ValueError where a change names something that this pass does not have.

    name: the model's. lengths: tokens of the text, and of the target (0 without one).
    """
    layers = {layer.place.name: layer for layer in module.attentions()}
    _check_heads(change, name, layers)
    for position in sorted(change.hidden):
        if position >= lengths[0]:
            raise ValueError(
                f"Position {position} cannot be hidden: the text has {lengths[0]} tokens."
            )
    if change.blocked and module.config.shape == "encoder-decoder" and change.only is None:
        raise ValueError("Name the sub-layers (`only`) in which single edges are cut.")
    _check_edges(
        change, [layer.place for name, layer in layers.items() if change.applies(name)], lengths
    )


def _check_heads(change: Intervention, model: str, layers: Mapping[str, AttentionLayer]) -> None:
    for name in (change.only or frozenset()) | {name for name, _ in change.ablated}:
        if name not in layers:
            raise ValueError(f"{model} has no attention sub-layer {name!r}.")
    for name, head in change.ablated:
        if not 0 <= head < layers[name].heads:
            raise ValueError(f"{name} has heads 0 to {layers[name].heads - 1}, not {head}.")


def _check_edges(change: Intervention, places: list[Place], lengths: tuple[int, int]) -> None:
    source, target = lengths
    sizes = {_size(place, source, target or source) for place in places}
    for query, key in sorted(change.blocked):
        if not any(query < queries and key < keys for queries, keys in sizes):
            raise ValueError(
                f"Query {query} and key {key} cannot be cut: no sub-layer has both positions."
            )


def _size(place: Place, source: int, target: int) -> tuple[int, int]:
    """(queries, keys) of an attention sub-layer. Without a second stack both lengths are equal."""
    queries = target if place.stack == "decoder" else source
    return queries, source if place.kind == "cross" else queries
