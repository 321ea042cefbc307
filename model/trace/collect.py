"""From the tensors of a pass to the plain arrays of a Trace."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from model.nn.config import Projection
from model.nn.recorder import (
    AttentionTensors,
    FeedForwardTensors,
    NormTensors,
    Recorder,
    TableRows,
)
from model.system.memory import enough_memory, make_room
from model.trace.arrays import Array, Mask, read_only
from model.trace.records import Attention, FeedForwardRecord, NormRecord, Token
from model.trace.trace import LateArrays, Logits, Trace


def array_of(tensor: Tensor) -> Array:
    """A tensor's values without its batch axis: float32, CPU, read-only, shared where possible."""
    values = tensor.detach()[0].to("cpu", torch.float32).numpy()
    values.flags.writeable = False
    return values


def words_of(device: torch.device) -> str:
    """A device as a page says it: "the CPU", "CUDA (NVIDIA H100)"."""
    if device.type == "cuda":
        return f"CUDA ({torch.cuda.get_device_name(device)})"
    return "the CPU" if device.type == "cpu" else device.type


def attention_record(
    tensors: AttentionTensors, ablated: tuple[int, ...], projection: Projection
) -> Attention:
    """One sub-layer's tensors as a record of plain arrays. Cross-attention turns nothing, for its
    queries and keys stand in two texts."""
    return Attention(
        name=tensors.place.name,
        kind=tensors.place.kind,
        stack=tensors.place.stack,
        layer=tensors.place.layer,
        heads=tensors.query.shape[1],
        scale=tensors.scale,
        fill=tensors.fill,
        output=array_of(tensors.output),
        ablated=ablated,
        vectors=(array_of(tensors.query), array_of(tensors.key), array_of(tensors.value)),
        own_mask=None if tensors.mask is None else _mask_of(tensors.mask),
        look_ahead=tensors.causal,
        steps={name: array_of(step) for name, step in tensors.steps.items()},
        projection=(
            replace(projection, turned=False) if tensors.place.kind == "cross" else projection
        ),
    )


def _mask_of(mask: Tensor) -> Mask:
    """(query, key): masks that broadcast over batch and heads lose those axes."""
    return read_only(mask.reshape(-1, *mask.shape[-2:])[0].cpu().numpy().copy())


def norm_record(tensors: NormTensors) -> NormRecord:
    """One norm's tensors as a record of plain arrays; gamma and beta are copied, for they are the
    model's and may be trained on."""
    gamma = tensors.gamma.detach().clone()
    beta = torch.zeros_like(gamma) if tensors.beta is None else tensors.beta.detach().clone()
    return NormRecord(
        name=tensors.name,
        kind=tensors.kind,
        input=array_of(tensors.input),
        mean=array_of(tensors.mean)[:, 0],
        inverse_deviation=array_of(tensors.inverse_deviation)[:, 0],
        epsilon=tensors.epsilon,
        gamma=array_of(gamma[None]),
        beta=array_of(beta[None]),
        recorded=None if tensors.output is None else array_of(tensors.output),
    )


def feed_forward_record(tensors: FeedForwardTensors) -> FeedForwardRecord:
    """One hidden layer's tensors as a record of plain arrays."""
    return FeedForwardRecord(
        name=tensors.name,
        before=array_of(tensors.before),
        kept=None if tensors.hidden is None else array_of(tensors.hidden),
        activation=tensors.activation,
    )


def late_logits(normed: Tensor, matrix: Tensor) -> Logits:
    """Logits to be made of the last states after the final norm (B, T, C), by the model's own output
    matrix (V, C). They raise ValueError where the matrix is another one by then, and OutOfMemoryError.
    """
    states, weights, vocabulary = normed.detach()[0], unchanged(matrix), len(matrix)

    def make(rows: slice) -> Array:
        fed = states[rows]
        with torch.inference_mode(), enough_memory(f"the logits of {len(fed):,} tokens"):
            make_room(len(fed) * vocabulary)
            return array_of((fed @ weights().T)[None])

    return Logits((len(states), vocabulary), make)


def late_summand(rows: TableRows) -> Callable[[], Array]:
    """A summand of the embedding to be read from the model's table, (token, d_model). Raises ValueError
    where the table is another one by then."""
    table = unchanged(rows.table)

    def make() -> Array:
        with torch.inference_mode():
            return _rows(replace(rows, table=table()).made())

    return make


def unchanged(weights: Tensor) -> Callable[[], Tensor]:
    """The values of these weights, wherever the model moves. Asked for after somebody has changed them
    they raise ValueError."""
    values = weights.detach()
    version = None if values.is_inference() else values._version  # made by the pass: nobody has it

    def read() -> Tensor:
        if version is not None and values._version != version:
            raise ValueError("The model's weights were changed after this pass: run it again.")
        return values

    return read


def trace_of(
    recorder: Recorder,
    *,
    model: str,
    text: str,
    tokens: tuple[Token, ...],
    target_tokens: tuple[Token, ...],
    angles: Tensor | None,
    prediction: Logits | None,
    projection: Projection,
    device: torch.device,
) -> Trace:
    """What a recorder collected, as a Trace."""
    change = recorder.intervention
    projection = replace(projection, turned=projection.turned and change.positions)
    return Trace(
        model=model,
        text=text,
        intervention=change,
        tokens=tokens,
        target_tokens=target_tokens,
        attention=tuple(
            attention_record(tensors, change.ablated_heads(tensors.place.name), projection)
            for tensors in recorder.attention
        ),
        norms=tuple(norm_record(tensors) for tensors in recorder.norms),
        states={
            stack: tuple(array_of(state) for state in states)
            for stack, states in recorder.streams.items()
        },
        summands={
            stack: {name: _rows(summand) for name, summand in parts.items()}
            for stack, parts in recorder.summands.items()
        }
        | {
            stack: LateArrays({name: late_summand(rows) for name, rows in tables.items()})
            for stack, tables in recorder.tables.items()
        },
        angles=None if angles is None else array_of(angles[None]),
        feed_forward=tuple(feed_forward_record(tensors) for tensors in recorder.feed_forward),
        prediction=prediction,
        device=words_of(device),
    )


def _rows(summand: Tensor) -> Array:
    """(token, d_model). A summand without a batch axis is a part of a table, and copied."""
    return array_of(summand if summand.ndim == 3 else summand[None].clone())
