"""What a model really has and a pass really left, under the names of the counted operations."""

from typing import TYPE_CHECKING

from model.analysis.cost.operations import Lengths, Operation
from model.nn.config import Stack
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Shape = tuple[int, ...]


def lengths_of(trace: Trace) -> Lengths:
    """What a recorded pass has read."""
    return Lengths(1, len(trace.tokens), len(trace.target_tokens))


def recorded_shapes(trace: Trace) -> dict[tuple[str, str], Shape]:
    """Shape of each recorded array by (place, name) of its operation, read from the first layer.

    One sequence was read, so there is no batch axis. What is a view of another array, or is not
    kept, is not listed.
    """
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
    """Each operation with its recorded shape, if any, and whether both are the same for one
    sequence."""
    rows: list[tuple[Operation, Shape | None, bool | None]] = []
    for step in operations:
        shape = recorded.get(step.key)
        rows.append((step, shape, None if shape is None else (1, *shape) == step.shape))
    return rows


def counted_parameters(model: "Model") -> int:
    """Numbers in the weights of a loaded model, a tied matrix once."""
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
        found[place, "Q, heads first"] = record.query.shape
        found[place, "K, heads first"] = record.vectors[1].shape
        found[place, "V, heads first"] = record.vectors[2].shape
        found[place, "Scores"] = (record.heads, *record.scores(0).shape)
        found[place, "Scaled"] = (record.heads, *record.masked(0).shape)
        found[place, "Weights"] = (record.heads, *record.weights(0).shape)
        found[place, "Context"] = record.output.shape
    return found


def _norms(trace: Trace, stack: Stack) -> dict[tuple[str, str], Shape]:
    found: dict[tuple[str, str], Shape] = {}
    for record in trace.norms:
        where, *between, _ = record.name.split(".")
        if where != stack:
            continue
        if between == ["final"]:
            found[f"{stack}.final", "Final norm"] = record.output.shape
        elif between == ["embedding"]:
            found[f"{stack}.embedding", "Norm"] = record.output.shape
        elif between[0] == "0":
            found[f"{stack}.{between[1]}", "Norm"] = record.output.shape
    return found
