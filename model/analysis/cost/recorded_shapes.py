"""The shapes that a pass really left, under the names of the counted operations."""

from typing import TYPE_CHECKING

from model.analysis.cost.operations import OUTPUT, Lengths, Operation
from model.analysis.stream.stream import sub_layers
from model.nn.config import Stack
from model.nn.places import Place
from model.system.elsewhere import asked
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    pass

Shape = tuple[int, ...]
Key = tuple[str, str]  # place and name of an operation


def lengths_of(trace: Trace) -> Lengths:
    """The lengths of what a pass read."""
    return Lengths(1, len(trace.tokens), len(trace.target_tokens))


@asked
def recorded_shapes(trace: Trace) -> dict[Key, Shape]:
    """Shape of each recorded array of the first layer by (place, name) of its operation, without the
    batch axis. Views of other arrays are not listed."""
    found: dict[Key, Shape] = {}
    for stack in trace.stacks:
        found |= _stream(trace, stack)
    for attention in trace.attention:
        if attention.layer == 0:
            found |= _attention(attention)
    for norm in trace.norms:
        place = Place.named(norm.name)
        if not place.layer:  # the first one, or outside of the layers
            after = "Norm of the output" if norm.name == place.after else "Norm"
            name = "Final norm" if place.kind == "final" else after
            found[place.in_any_layer, name] = norm.output.shape
    for record in trace.feed_forward:
        place = Place.named(record.name)
        if place.layer == 0:
            found[place.in_any_layer, "Hidden layer"] = record.before.shape
            found[place.in_any_layer, "Activation"] = record.hidden.shape
    for experts in trace.experts[:1]:
        found[Place.named(experts.name).in_any_layer, "Router"] = experts.logits.shape
    if trace.prediction is not None:
        found[OUTPUT, "Logits"] = trace.prediction.shape
    return found


def compared(
    operations: tuple[Operation, ...], recorded: dict[Key, Shape]
) -> list[tuple[Operation, Shape | None, bool | None]]:
    """Each operation with its recorded shape, if any, and whether both agree for one sequence."""
    pairs = [(step, recorded.get(step.key)) for step in operations]
    return [
        (step, shape, None if shape is None else (1, *shape) == step.shape) for step, shape in pairs
    ]


def _stream(trace: Trace, stack: Stack) -> dict[Key, Shape]:
    embedding = Place(stack, None, "embedding").name
    found = {
        (embedding, "Token ids"): (len(trace.tokens_of(stack)),),
        (embedding, "Token vectors"): trace.summands[stack]["tokens"].shape,
        (embedding, "Plus positions"): trace.residual[stack][0].shape,
    }
    places = [Place.named(name) for name in sub_layers(trace, stack)]
    first = [place for place in places if place.layer == 0]
    for state, place in zip(trace.residual[stack][1:], first, strict=False):
        found[place.in_any_layer, "Plus the stream"] = state.shape
    return found


def _attention(attention: Attention) -> dict[Key, Shape]:
    place = attention.place.in_any_layer
    vectors = zip("QKV", attention.vectors, strict=True)
    maps = {"Scores": attention.scores, "Scaled": attention.masked, "Weights": attention.weights}
    return (
        {(place, f"{name}, heads first"): each.shape for name, each in vectors}
        | {(place, name): (attention.heads, *of(0).shape) for name, of in maps.items()}
        | {(place, "Context"): attention.output.shape}
    )
