"""The shapes that a pass really left, under the names of the counted operations."""

from typing import TYPE_CHECKING

from model.analysis.cost.operations import Lengths, Operation
from model.nn.config import Stack
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Shape = tuple[int, ...]


def lengths_of(trace: Trace) -> Lengths:
    """The lengths of what a pass read."""
    return Lengths(1, len(trace.tokens), len(trace.target_tokens))


def recorded_shapes(trace: Trace) -> dict[tuple[str, str], Shape]:
    """Shape of each recorded array of the first layer by (place, name) of its operation, without the
    batch axis. Views of other arrays are not listed."""
    found: dict[tuple[str, str], Shape] = {}
    for stack in trace.states:
        found |= _stream(trace, stack) | _attention(trace, stack) | _norms(trace, stack)
    for record in trace.feed_forward:
        where, layer, _ = record.name.split(".")
        if layer == "0":
            found[f"{where}.feed_forward", "Hidden layer"] = record.before.shape
            found[f"{where}.feed_forward", "Activation"] = record.hidden.shape
    if trace.prediction is not None:
        found["decoder.output", "Logits"] = trace.prediction.shape
    return found


def compared(
    operations: tuple[Operation, ...], recorded: dict[tuple[str, str], Shape]
) -> list[tuple[Operation, Shape | None, bool | None]]:
    """Each operation with its recorded shape, if any, and whether both agree for one sequence."""
    pairs = [(step, recorded.get(step.key)) for step in operations]
    return [
        (step, shape, None if shape is None else (1, *shape) == step.shape) for step, shape in pairs
    ]


def counted_parameters(model: "Model") -> int:
    """Parameters of a loaded model; a tied matrix counts once."""
    return sum(weight.numel() for weight in model.module.parameters())


def _stream(trace: Trace, stack: Stack) -> dict[tuple[str, str], Shape]:
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


def _attention(trace: Trace, stack: Stack) -> dict[tuple[str, str], Shape]:
    found: dict[tuple[str, str], Shape] = {}
    for record in trace.attention:
        if record.stack != stack or record.layer != 0:
            continue
        place = f"{stack}.{record.name.rpartition('.')[2]}"
        for name, vectors in zip("QKV", record.vectors, strict=True):
            found[place, f"{name}, heads first"] = vectors.shape
        maps = {"Scores": record.scores, "Scaled": record.masked, "Weights": record.weights}
        found |= {(place, name): (record.heads, *of(0).shape) for name, of in maps.items()}
        found[place, "Context"] = record.output.shape
    return found


def _norms(trace: Trace, stack: Stack) -> dict[tuple[str, str], Shape]:
    found: dict[tuple[str, str], Shape] = {}
    for record in trace.norms:
        where, *between, _ = record.name.split(".")
        if where == stack and between[0] in ("0", "embedding", "final"):
            name = "Final norm" if between == ["final"] else "Norm"
            found[f"{stack}.{between[-1]}", name] = record.output.shape
    return found
