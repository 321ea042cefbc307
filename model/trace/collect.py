"""From the tensors of a pass to the plain arrays of a Trace."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.nn.attention import in_blocks
from model.nn.config import Projection, Reasons, TransformerConfig
from model.nn.intervention import WeightSet
from model.nn.places import Kind
from model.nn.recorder import (
    AttentionTensors,
    ExpertTensors,
    FeedForwardTensors,
    NormTensors,
    Recorder,
    Rerun,
    TableRows,
)
from model.nn.stages import STAGES
from model.system.memory import enough_memory, make_room
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.lazy import Lazy, LazyArrays, named, states_of, value_of
from model.trace.records import Attention, ExpertsRecord, FeedForwardRecord, NormRecord, Token
from model.trace.trace import Logits, Trace, Vocabulary
from model.trace.transfer import DeviceArray, on_processor, unrepeated

CHANGED = "The model's weights were changed after this pass: run it again."


def array_of(tensor: Tensor) -> Array:
    """A tensor's values without its batch axis: float32, CPU, read-only, shared where possible."""
    return numbers_of(tensor[0])


def numbers_of(tensor: Tensor) -> Array:
    """A tensor's values: float32, CPU, read-only, shared where possible."""
    values = tensor.detach()
    if values.dtype != torch.float32:
        values = values.to(torch.float32)
    array = on_processor(values).numpy()
    array.flags.writeable = False
    return array


def doubled(tensor: Tensor) -> Tensor:
    """A tensor in float64, on the CPU where its device knows no such numbers."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def words_of(device: torch.device, precision: torch.dtype = torch.float32) -> str:
    """Where a pass ran, on a page: "the CPU", "CUDA (NVIDIA H100), in bfloat16"."""
    names = {"cpu": "the CPU", "mps": "a Mac's graphics processor (MPS)"}
    name = names.get(device.type, device.type)
    if device.type == "cuda":
        name = f"CUDA ({torch.cuda.get_device_name(device)})"
    return (
        name
        if precision == torch.float32
        else f"{name}, in {str(precision).removeprefix('torch.')}"
    )


def on_device(make: Callable[..., Any], tensor: Tensor, *how: object) -> DeviceArray:
    """What `make` gives for a tensor on the device of a pass."""
    masks = tensor.dtype == torch.bool
    axes = [*zip(tensor.shape, tensor.stride(), strict=True)][-2 if masks else 1 :]
    numbers = math.prod(size for size, step in axes if step)
    nbytes = numbers * (1 if masks else 4)
    return DeviceArray(make, tensor, *how, nbytes=nbytes)


def _shapes(tensors: Iterable[Tensor]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(one.shape[1:]) for one in tensors)


def recomputed_lazily(call: AttentionTensors, rerun: Rerun) -> tuple[Any, Any]:
    """Vectors and output of a sub-layer that has let go of them. Reading one raises ValueError once the
    weights were changed, or moved to a device, whose sums are others."""
    weights = [unchanged(weight) for weight in rerun.weights]

    def make() -> tuple[tuple[Array, ...], Array]:
        for read, weight in zip(weights, rerun.weights, strict=True):
            if read().data_ptr() != weight.data_ptr():
                raise ValueError(CHANGED)
        made = rerun()
        return tuple(map(array_of, (made.query, made.key, made.value))), array_of(made.output)

    both = Lazy(make, source=rerun)

    def half(at: int, *tensors: Tensor) -> Lazy[Any]:
        shapes = _shapes(tensors)
        nbytes = 4 * sum(map(math.prod, shapes))
        return Lazy(lambda: both.get()[at], shapes, nbytes, source=both)

    return half(0, call.query, call.key, call.value), half(1, call.output)


class _Alike:
    """Arrays that differ from each other."""

    def __init__(self) -> None:
        self._arrays: list[Any] = []

    def first(self, tensor: Tensor, make: Callable[..., Any], *how: object) -> Any:
        """What `make` gives for a tensor, or the first array that is equal to it."""
        made = make(tensor, *how)
        known = (one for one in self._arrays if made is not None and np.array_equal(one, made))
        same = next(known, None)
        if same is None and made is not None:
            self._arrays.append(made)
        return made if same is None else same


class PassArrays:
    """The arrays of one pass, each once: a norm's input is a state of the stream, and layers share a mask.
    Those of tensors that are not on the CPU are lazy, for to copy one is to wait for the device."""

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}  # by a tensor's place in memory
        self._tensors: list[Tensor] = []  # so that none takes another's place
        self._alike = _Alike()  # masks and biases

    @property
    def on_device(self) -> tuple[Lazy[Any], ...]:
        """What lies on the device."""
        return tuple(one for one in self._kept.values() if isinstance(one, Lazy))

    def of(self, tensor: Tensor, make: Callable[..., Any] = array_of, *how: object) -> Any:
        """What `make` gives for a tensor with a batch axis, now or when it is read."""
        place = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, make, how
        if place not in self._kept:
            self._tensors.append(tensor)
            made = make if tensor.device.type == "cpu" else partial(on_device, make)
            self._kept[place] = made(tensor.detach(), *how)
        return self._kept[place]

    def cells(self, tensor: Tensor, make: Callable[..., Any], *how: object) -> Any:
        """The same of a mask or a bias. Equal ones are kept once: those of all layers of a long text could
        take gigabytes."""
        return self.of(tensor, self._alike.first, make, *how)

    def vectors(self, *tensors: Tensor) -> Any:
        """Queries, keys and values, or all of them lazily."""
        made = tuple(map(self.of, tensors))
        if not isinstance(made[0], Lazy):
            return made
        nbytes = sum(one.nbytes for one in made)
        return Lazy(lambda: tuple(map(value_of, made)), _shapes(tensors), nbytes, source=made)

    def states(self, tensors: Iterable[Tensor]) -> Any:
        """States of the stream."""
        return states_of(tuple(map(self.of, tensors)))

    def named(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Array]:
        """Arrays by name."""
        return named({name: self.of(one) for name, one in tensors.items()})


def tensors_there(fields_: Mapping[str, object]) -> dict[str, Tensor | None] | None:
    """The tensors of lazy fields by name, in single precision; None for what a record does not have. None of
    them where one was read, or lies on no device."""
    found: dict[str, Tensor | None] = {}
    for name, one in fields_.items():
        tensor = found[name] = getattr(one, "source", None)
        if one is not None and not isinstance(tensor, Tensor):
            return None
        if tensor is not None and tensor.is_floating_point():
            found[name] = tensor.float()
    return found


_NUMBERS = (stage.field for stage in STAGES if not stage.is_array)
_SINGLE = ("scale", *_NUMBERS, "window", "look_ahead", "mask_value")  # of a sub-layer, no arrays


class LazyAttention(Attention):
    """A sub-layer whose vectors are lazy. As long as none of them was read its check runs where its tensors
    lie, or keeps nothing of what it makes."""

    @property
    def longest(self) -> tuple[Array, Array]:
        both = getattr(vars(self)["vectors"], "source", None)
        rerun = getattr(both, "source", None)
        if not isinstance(rerun, Rerun):
            return super().longest
        queries, keys = (one.numpy() for one in rerun.longest)
        return queries, np.repeat(keys, self.heads // len(keys))

    def check(self) -> float:
        if isinstance(both := getattr(vars(self)["vectors"], "source", None), Lazy):
            given = {one.name: vars(self)[one.name] for one in fields(self)}
            given["vectors"], given["output"] = both.once()
            return Attention(**given).check()
        call = None if self.steps or self.weights_set else self.tensors()
        if call is None:
            return super().check()
        with torch.no_grad():
            again = in_blocks(call, 0.0, by_kernel=False)
            return float((again - call.output).abs().max())

    def tensors(self) -> AttentionTensors | None:
        """What it was computed from, in single precision; None where some of it was read."""
        own = vars(self)
        parts = getattr(own["vectors"], "source", None)
        if not isinstance(parts, tuple):
            return None
        lazy = dict(zip(("query", "key", "value"), parts, strict=True))
        lazy |= {"output": own["output"], "mask": own["own_mask"]}
        lazy |= {"bias": own["bias"], "sinks": own["sinks"]}
        found: Any = tensors_there(lazy)
        if found is None:
            return None
        if found["sinks"] is not None:
            found["sinks"] = found["sinks"][0]
        more = {name: own[name] for name in _SINGLE}
        return AttentionTensors(**found, **more, place=self.place, steps={})


def tensors_of(record: Attention) -> AttentionTensors:
    """What a sub-layer was computed from and what it gave, in single precision, (1, …) each: where they lie;
    on the processor once one of them was read."""
    there = record.tensors() if isinstance(record, LazyAttention) else None
    if there is not None:
        return there
    query, key, value, output = (
        torch.tensor(one)[None] for one in (*record.vectors, record.output)
    )
    mask, bias, sinks = (
        None if one is None else torch.tensor(one)
        for one in (record.own_mask, record.bias, record.sinks)
    )
    return AttentionTensors(
        place=record.place,
        query=query,
        key=key,
        value=value,
        output=output,
        mask=None if mask is None else mask.reshape(1, -1, *mask.shape[-2:]),
        bias=None if bias is None else bias[None],
        sinks=sinks,
        steps={},
        **{name: getattr(record, name) for name in _SINGLE},
    )


class NormOnDevice(NormRecord):
    """A norm whose check runs where its tensors lie, as long as none of them was read."""

    def check(self) -> float:
        names = ("input", "mean", "inverse_deviation", "gamma", "beta", "recorded")
        found: Any = tensors_there({name: vars(self)[name] for name in names})
        if found is None or found["input"].device.type == "mps":  # which knows no double precision
            return super().check()
        with torch.no_grad():
            x, mean, inverse = (found[name][0] for name in names[:3])
            recorded = (x - mean[:, None]) * inverse[:, None]
            x = x.double()
            x = x - x.mean(-1, keepdim=True) if self.law.centres else x
            normalized = x * (x.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()
            gap = (normalized - recorded).abs().max()
            if found["recorded"] is not None:
                again = normalized * found["gamma"] + found["beta"]
                gap = torch.maximum(gap, (again - found["recorded"]).abs().max())
            return float(gap)


def attention_record(
    tensors: AttentionTensors,
    ablated: tuple[int, ...],
    projection: Projection,
    weights_set: tuple[WeightSet, ...] = (),
    arrays: PassArrays | None = None,
) -> Attention:
    """One sub-layer's tensors as a record of plain arrays.

    Args:
        ablated: numbers of the heads whose output is zero.
        projection: of the model. Cross-attention is never rotary: its queries and keys stand in two texts.
        weights_set: by hand, in this sub-layer.
        arrays: those of the other sub-layers of the pass; None: there are none.
    """
    arrays = arrays or PassArrays()
    place, crosses = tensors.place, tensors.place.kind == "cross"
    mask = tensors.mask
    if tensors.rerun is not None:
        vectors, output = recomputed_lazily(tensors, tensors.rerun)
    else:
        vectors = arrays.vectors(tensors.query, tensors.key, tensors.value)
        output = arrays.of(tensors.output)
    kind = LazyAttention if isinstance(vectors, Lazy) else Attention
    return kind(
        place=place,
        heads=tensors.query.shape[1],
        scale=tensors.scale,
        mask_value=tensors.mask_value,
        output=output,
        ablated=ablated,
        weights_set=weights_set,
        vectors=vectors,
        own_mask=None if mask is None else arrays.cells(mask, _mask_of, place.kind),
        look_ahead=tensors.look_ahead,
        steps=arrays.named(tensors.steps),
        projection=replace(projection, turned=False) if crosses else projection,
        window=tensors.window,
        **{stage.field: _need(stage.of(tensors), arrays) for stage in STAGES},
    )


def _attention_records(
    recorder: Recorder, projection: Projection, arrays: PassArrays
) -> Iterator[Attention]:
    """Every attention sub-layer of a pass."""
    for tensors in recorder.attention:
        name, intervention = tensors.place.name, recorder.intervention
        ablated, cells = intervention.ablated_heads(name), intervention.weights_in(name)
        yield attention_record(tensors, ablated, projection, cells, arrays)


def _need(value: Tensor | float | None, arrays: PassArrays) -> Any:
    """What a stage needs, as it is kept."""
    if not isinstance(value, Tensor):
        return value
    if value.ndim == 1:
        return arrays.of(value.detach().clone()[None])
    return arrays.cells(value, _bias_of)


def _bias_of(bias: Tensor) -> Array | None:
    """(head or 1, query or 1, key): without the axes over which the bias is repeated. None where it adds
    nothing: T5's cross-attention gets a bias of zeros."""
    array = array_of(unrepeated(bias, (1, 2)))
    return array if array.any() else None


def _mask_of(mask: Tensor, kind: Kind) -> BoolArray | None:
    """(query, key): without the axes over which the mask broadcasts. None where it hides nothing, except from
    a layer that hides the future: of a single token it has none to hide."""
    own: BoolArray = mask.reshape(-1, *mask.shape[-2:])[0].cpu().numpy()
    return None if kind != "causal" and own.all() else read_only(own.copy())


def norm_record(tensors: NormTensors, arrays: PassArrays | None = None) -> NormRecord:
    """One norm's tensors as a record of plain arrays; gamma and beta are copied, for training may
    change them."""
    arrays = arrays or PassArrays()
    gamma = tensors.gamma.detach().clone()
    beta = torch.zeros_like(gamma) if tensors.beta is None else tensors.beta.detach().clone()
    return (NormRecord if tensors.input.device.type == "cpu" else NormOnDevice)(
        name=tensors.name,
        kind=tensors.kind,
        input=arrays.of(tensors.input),
        mean=arrays.of(tensors.mean[..., 0]),
        inverse_deviation=arrays.of(tensors.inverse_deviation[..., 0]),
        epsilon=tensors.epsilon,
        gamma=arrays.of(gamma[None]),
        beta=arrays.of(beta[None]),
        recorded=None if tensors.output is None else arrays.of(tensors.output),
    )


def _feed_forward_record(tensors: FeedForwardTensors, arrays: PassArrays) -> FeedForwardRecord:
    hidden = None if tensors.hidden is None else arrays.of(tensors.hidden)
    return FeedForwardRecord(tensors.name, arrays.of(tensors.before), hidden, tensors.activation)


def _experts_record(tensors: ExpertTensors, arrays: PassArrays) -> ExpertsRecord:
    logits, weights = (arrays.of(one[None]) for one in (tensors.logits, tensors.weights))
    return ExpertsRecord(tensors.name, logits, weights, arrays.of(tensors.chosen[None], _numbers))


def _numbers(chosen: Tensor) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = read_only(chosen[0].cpu().numpy())
    return numbers


def deferred_logits(normed: Tensor, matrix: Tensor) -> Logits:
    """Logits to be computed from final states (B, T, C) and the model's output matrix (V, C). Asked for
    once the matrix was changed they raise ValueError; without memory, OutOfMemoryError."""
    states, weights, vocabulary = normed.detach()[0], unchanged(matrix), len(matrix)

    def compute(rows: slice) -> Array:
        fed = states[rows]
        with torch.inference_mode(), enough_memory(f"the logits of {len(fed):,} tokens"):
            make_room(len(fed) * vocabulary)
            return array_of((fed @ weights().T)[None])

    return Logits((len(states), vocabulary), compute)


def recorded_logits(logits: Tensor, arrays: PassArrays) -> Logits:
    """Logits (1, T, V) that a pass ended with."""
    kept, (_, tokens, vocabulary) = arrays.of(logits), logits.shape
    return Logits((tokens, vocabulary), lambda rows: value_of(kept)[rows], kept)


def deferred_summand(rows: TableRows) -> Callable[[], Array]:
    """(token, d_model): a summand of the embedding, to be read from the model's table. Asked for once
    the table was changed it raises ValueError."""
    table = unchanged(rows.table)

    def compute() -> Array:
        with torch.inference_mode():
            return array_of(_batched(replace(rows, table=table()).made()))

    return compute


def unchanged(weights: Tensor) -> Callable[[], Tensor]:
    """A way to read these weights later that raises ValueError once they were changed. Moving the
    model does no harm."""
    values = weights.detach()
    version = None if values.is_inference() else values._version  # inference tensors cannot change

    def read() -> Tensor:
        if version is not None and values._version != version:
            raise ValueError(CHANGED)
        return values

    return read


_OF_NORM = ("input", "mean", "inverse_deviation", "output")


class _BatchRow:
    """One text of a batch of (B, T) tokens: copies of its row of each tensor, without what stands behind its
    own tokens. One copy of each: a norm's input is a state of the stream."""

    def __init__(self, row: int, size: tuple[int, int], length: int) -> None:
        self.row, self.size, self.length = row, size, length
        self._copies: dict[object, Tensor] = {}

    def _copied(self, x: Tensor, own: Tensor) -> Tensor:
        place = x.data_ptr(), x.shape, x.stride(), x.dtype
        if place not in self._copies:
            self._copies[place] = own.clone()
        return self._copies[place]

    def by_token(self, x: Tensor) -> Tensor:
        """(1, length, C) of (B, T, C) or (B · T, C), or of (T, C), which all texts share."""
        texts, tokens = self.size
        shared = x.shape[:-1].numel() < texts * tokens
        rows = x.reshape(1 if shared else texts, tokens, x.shape[-1])
        return self._copied(x, rows[0 if shared else self.row, : self.length][None])

    def by_head(self, x: Tensor) -> Tensor:
        """(1, H, length, D) of (B, H, T, D)."""
        return self._copied(x, x[self.row : self.row + 1, :, : self.length])

    def cells(self, x: Tensor) -> Tensor:
        """(1, H or 1, length or 1, length) of what broadcasts to (B, H, T, T)."""
        x = unrepeated(x.reshape((1,) * (4 - x.ndim) + x.shape), (1, 2))
        row = self.row if len(x) > 1 else 0
        return self._copied(x, x[row : row + 1, :, : self.length, : self.length])

    def cut(self, of: Any, by: Callable[[Tensor], Tensor], *names: str) -> Any:
        """A record of tensors with its row of these of its fields."""
        given = {name: getattr(of, name) for name in names}
        return replace(of, **{name: by(x) for name, x in given.items() if x is not None})

    def attention(self, of: AttentionTensors) -> AttentionTensors:
        mask = None if of.mask is None else self.cells(of.mask).expand(-1, -1, self.length, -1)
        vectors = self.cut(of, self.by_head, "query", "key", "value", "output")
        return replace(self.cut(vectors, self.cells, "bias"), mask=mask)


def row_of(recorder: Recorder, row: int, size: tuple[int, int], length: int) -> Recorder:
    """What one text of a batch left behind, as a pass of its own would.

    Args:
        row: which text.
        size: texts and tokens of the batch, (B, T).
        length: tokens of this text; what stands behind them is left out.

    Not for an explicit or a deferred pass, nor for one with a second text.
    """
    own = _BatchRow(row, size, length)
    return replace(
        recorder,
        attention=[own.attention(one) for one in recorder.attention],
        norms=[own.cut(one, own.by_token, *_OF_NORM) for one in recorder.norms],
        streams={
            stack: [own.by_token(x) for x in states] for stack, states in recorder.streams.items()
        },
        feed_forward=[
            own.cut(one, own.by_token, "before", "hidden") for one in recorder.feed_forward
        ],
        experts=[
            own.cut(one, lambda x: own.by_token(x)[0], "logits", "weights", "chosen")
            for one in recorder.experts
        ],
        written={name: own.by_token(x) for name, x in recorder.written.items()},
        summands={
            stack: {name: own.by_token(x) for name, x in parts.items()}
            for stack, parts in recorder.summands.items()
        },
    )


def trace_of(
    recorder: Recorder,
    *,
    model: str,
    text: str,
    tokens: tuple[Token, ...],
    target_tokens: tuple[Token, ...],
    angles: Tensor | None,
    prediction: Logits | None,
    device: torch.device,
    unproven: Reasons,
    config: TransformerConfig,
    vocabulary: Vocabulary | None = None,
    arrays: PassArrays,
    precision: torch.dtype = torch.float32,
) -> Trace:
    """All that a recorder collected, as a Trace.

    Args:
        model, text: as the trace names them.
        target_tokens: of the second text; () where there is one alone.
        angles: (token, pair), in radians; None: nothing is rotary.
        device, precision: that the pass ran on and in.
        arrays: those of this pass that were made before.
    """
    intervention, projection = recorder.intervention, config.projection
    projection = replace(projection, turned=projection.turned and intervention.positions)
    return Trace(
        model=model,
        text=text,
        intervention=intervention,
        tokens=tokens,
        target_tokens=target_tokens,
        attention=tuple(_attention_records(recorder, projection, arrays)),
        norms=tuple(norm_record(one, arrays) for one in recorder.norms),
        residual={stack: arrays.states(of) for stack, of in recorder.streams.items()},
        summands={
            stack: arrays.named({name: _batched(summand) for name, summand in parts.items()})
            for stack, parts in recorder.summands.items()
        }
        | {
            stack: LazyArrays(
                {name: Lazy(deferred_summand(rows), keeps=False) for name, rows in tables.items()}
            )
            for stack, tables in recorder.tables.items()
        },
        angles=None if angles is None else arrays.of(angles[None]),
        feed_forward=tuple(_feed_forward_record(one, arrays) for one in recorder.feed_forward),
        prediction=prediction,
        device=words_of(device, precision),
        experts=tuple(_experts_record(one, arrays) for one in recorder.experts),
        written=arrays.named(recorder.written),
        unproven=dict(unproven),
        config=config,
        vocabulary=vocabulary,
    )


def _batched(summand: Tensor) -> Tensor:
    """(B, token, d_model). Without a batch axis it is a part of a table, and copied."""
    return summand if summand.ndim == 3 else summand[None].clone()
