"""The shapes that a pass really left, under the names of the counted operations."""

from typing import TYPE_CHECKING

from model.analysis.cost.operations import Lengths, Operation
from model.nn.config import Stack
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Shape = tuple[int, ...]
Key = tuple[str, str]  # place and name of an operation


def lengths_of(trace: Trace) -> Lengths:
    """The lengths of what a pass read."""
    return Lengths(1, len(trace.tokens), len(trace.target_tokens))


def recorded_shapes(trace: Trace) -> dict[Key, Shape]:
    """Shape of each recorded array of the first layer by (place, name) of its operation, without the
    batch axis. Views of other arrays are not listed."""
    found: dict[Key, Shape] = {}
    for stack in trace.states:
        found |= _stream(trace, stack)
    for attention in trace.attention:
        if attention.layer == 0:
            found |= _attention(attention)
    for norm in trace.norms:
        where, *between, _ = norm.name.split(".")
        if between[0] in ("0", "embedding", "final"):
            name = "Final norm" if between == ["final"] else "Norm"
            found[f"{where}.{between[-1]}", name] = norm.output.shape
    for record in trace.feed_forward:
        where, layer, _ = record.name.split(".")
        if layer == "0":
            found[f"{where}.feed_forward", "Hidden layer"] = record.before.shape
            found[f"{where}.feed_forward", "Activation"] = record.hidden.shape
    if trace.prediction is not None:
        found["decoder.output", "Logits"] = trace.prediction.shape
    return found


def compared(
    operations: tuple[Operation, ...], recorded: dict[Key, Shape]
) -> list[tuple[Operation, Shape | None, bool | None]]:
    """Each operation with its recorded shape, if any, and whether both agree for one sequence."""
    pairs = [(step, recorded.get(step.key)) for step in operations]
    return [
        (step, shape, None if shape is None else (1, *shape) == step.shape) for step, shape in pairs
    ]


def counted_parameters(model: "Model") -> int:
    """Parameters of a loaded model; a tied matrix counts once."""
    return sum(weight.numel() for weight in model.module.parameters())


def _stream(trace: Trace, stack: Stack) -> dict[Key, Shape]:
    found = {
        (f"{stack}.embedding", "Token ids"): (len(trace.tokens_of(stack)),),
        (f"{stack}.embedding", "Token vectors"): trace.summands[stack]["tokens"].shape,
        (f"{stack}.embedding", "Plus positions"): trace.states[stack][0].shape,
    }
    names = [
        record.name.removesuffix(".norm").split(".")
        for record in trace.norms
        if record.name.startswith(f"{stack}.0.")
    ]
    for state, (_, _, kind) in zip(trace.states[stack][1:], names, strict=False):
        found[f"{stack}.{kind}", "Plus the stream"] = state.shape
    return found


def _attention(attention: Attention) -> dict[Key, Shape]:
    place = f"{attention.stack}.{attention.name.rpartition('.')[2]}"
    vectors = zip("QKV", attention.vectors, strict=True)
    maps = {"Scores": attention.scores, "Scaled": attention.masked, "Weights": attention.weights}
    return (
        {(place, f"{name}, heads first"): each.shape for name, each in vectors}
        | {(place, name): (attention.heads, *of(0).shape) for name, of in maps.items()}
        | {(place, "Context"): attention.output.shape}
    )
