"""A trace as a file that other programs read, and that comes back as it was.

Its layout is described in docs/trace-format.md.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from model.nn.config import Projection, Stack
from model.nn.intervention import Intervention
from model.trace.arrays import Array, Mask, read_only
from model.trace.records import Attention, FeedForwardRecord, NormRecord, Token
from model.trace.trace import Logits, Trace

FORMAT, VERSION = "attention-visualizer trace", 1
_VECTORS = ("query", "key", "value")
_NORM_ARRAYS = ("input", "mean", "inverse_deviation", "gamma", "beta")


def trace_file(trace: Trace) -> bytes:
    """The whole trace as safetensors: every recorded array, and all names in the metadata.

    `read_trace` gives the same trace again, array by array, bit by bit.
    """
    arrays = _arrays(trace)
    kept, same = _without_repeats(arrays)
    description = {
        "format": FORMAT,
        "version": VERSION,
        "model": trace.model,
        "text": trace.text,
        "device": trace.device,
        "intervention": _written_change(trace.intervention),
        "tokens": [_written_token(token) for token in trace.tokens],
        "target_tokens": [_written_token(token) for token in trace.target_tokens],
        "attention": [_written_attention(attention) for attention in trace.attention],
        "norms": [
            {"name": norm.name, "kind": norm.kind, "epsilon": norm.epsilon} for norm in trace.norms
        ],
        "feed_forward": [record.name for record in trace.feed_forward],
        "states": {stack: len(states) for stack, states in trace.states.items()},
        "summands": {stack: list(parts) for stack, parts in trace.summands.items()},
        "same": same,
    }
    return save(kept, {"trace": json.dumps(description)})


def read_trace(file: bytes) -> Trace:
    """The trace of a file that `trace_file` wrote. Raises ValueError for any other file."""
    try:
        stored = load(file)
        header = json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")])
        description = json.loads(header["__metadata__"]["trace"])
        if (description["format"], description["version"]) != (FORMAT, VERSION):
            raise ValueError("It is of another format or version.")
        return _read(description, stored)
    except (SafetensorError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"This file holds no trace that can be read: {error}") from error


def _arrays(trace: Trace) -> dict[str, NDArray[Any]]:
    """Every recorded array by its name in the file."""
    arrays: dict[str, NDArray[Any]] = {
        f"states/{stack}/{number}": state
        for stack, states in trace.states.items()
        for number, state in enumerate(states)
    }
    for stack, parts in trace.summands.items():
        arrays |= {f"summands/{stack}/{name}": part for name, part in parts.items()}
    for attention in trace.attention:
        arrays |= _attention_arrays(attention)
    for norm in trace.norms:
        place = f"norms/{norm.name}"
        arrays |= {f"{place}/{name}": getattr(norm, name) for name in _NORM_ARRAYS}
        if norm.recorded is not None:
            arrays[f"{place}/output"] = norm.recorded
    for record in trace.feed_forward:
        arrays[f"feed_forward/{record.name}/before"] = record.before
        arrays[f"feed_forward/{record.name}/hidden"] = record.hidden
    if trace.angles is not None:
        arrays["angles"] = trace.angles
    if trace.logits is not None:
        arrays["logits"] = trace.logits
    return arrays


def _attention_arrays(attention: Attention) -> dict[str, NDArray[Any]]:
    place = f"attention/{attention.name}"
    arrays: dict[str, NDArray[Any]] = {
        f"{place}/{name}": vectors
        for name, vectors in zip(_VECTORS, attention.vectors, strict=True)
    }
    arrays[f"{place}/output"] = attention.output
    if attention.own_mask is not None:
        arrays[f"{place}/mask"] = attention.own_mask
    arrays |= {f"{place}/steps/{name}": step for name, step in attention.steps.items()}
    return arrays


def _without_repeats(
    arrays: Mapping[str, NDArray[Any]],
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays to store, and for each one that is an earlier one, that one's name: the input of
    a norm is a state of the stream, and is kept once."""
    first: dict[object, str] = {}
    kept, same = {}, {}
    for name, array in arrays.items():
        memory = array.__array_interface__
        seen = first.setdefault((memory["data"][0], array.shape, array.strides, array.dtype), name)
        if seen == name:
            kept[name] = np.ascontiguousarray(array)
        else:
            same[name] = seen
    return kept, same


def _written_token(token: Token) -> dict[str, object]:
    return asdict(token) | {"raw": token.raw.hex()}


def _written_attention(attention: Attention) -> dict[str, object]:
    names = ("name", "kind", "stack", "layer", "heads", "scale", "look_ahead")
    return {name: getattr(attention, name) for name in names} | {
        "fill": str(attention.fill),  # minus infinity is no number in JSON
        "ablated": list(attention.ablated),
        "steps": list(attention.steps),
        "projection": asdict(attention.projection),
    }


def _written_change(change: Intervention) -> dict[str, object]:
    """Every field; sets become sorted lists, and the fill a word, for JSON has no infinity."""
    values = {field.name: getattr(change, field.name) for field in fields(change)}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in values.items()
    } | {"fill": str(change.fill)}


def _read_change(written: Mapping[str, Any]) -> Intervention:
    return Intervention(**{**written, "fill": float(written["fill"])})


def _read(description: Mapping[str, Any], stored: Mapping[str, NDArray[Any]]) -> Trace:
    same = description["same"]
    opened = {name: read_only(array) for name, array in stored.items()}
    arrays = opened | {name: opened[other] for name, other in same.items()}
    states: dict[Stack, tuple[Array, ...]] = {
        stack: tuple(arrays[f"states/{stack}/{number}"] for number in range(count))
        for stack, count in description["states"].items()
    }
    return Trace(
        model=description["model"],
        text=description["text"],
        intervention=_read_change(description["intervention"]),
        tokens=_read_tokens(description["tokens"]),
        target_tokens=_read_tokens(description["target_tokens"]),
        attention=tuple(_read_attention(entry, arrays) for entry in description["attention"]),
        norms=tuple(_read_norm(entry, arrays) for entry in description["norms"]),
        states=states,
        summands={
            stack: {name: arrays[f"summands/{stack}/{name}"] for name in names}
            for stack, names in description["summands"].items()
        },
        angles=arrays.get("angles"),
        feed_forward=tuple(
            FeedForwardRecord(
                name, arrays[f"feed_forward/{name}/before"], arrays[f"feed_forward/{name}/hidden"]
            )
            for name in description["feed_forward"]
        ),
        prediction=Logits.of(arrays["logits"]) if "logits" in arrays else None,
        device=description.get("device", ""),  # files of earlier versions do not say
    )


def _read_tokens(written: Sequence[Mapping[str, Any]]) -> tuple[Token, ...]:
    return tuple(_read_token(token) for token in written)


def _read_token(written: Mapping[str, Any]) -> Token:
    span = None if written["span"] is None else tuple(written["span"])
    return Token(**{**written, "raw": bytes.fromhex(written["raw"]), "span": span})


def _read_attention(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Attention:
    place = f"attention/{entry['name']}"
    query, key, value = (arrays[f"{place}/{name}"] for name in _VECTORS)
    mask: Mask | None = arrays.get(f"{place}/mask")
    given = {name: entry[name] for name in ("name", "kind", "stack", "layer", "heads", "scale")}
    return Attention(
        **given,
        fill=float(entry["fill"]),
        output=arrays[f"{place}/output"],
        ablated=tuple(entry["ablated"]),
        vectors=(query, key, value),
        own_mask=mask,
        look_ahead=entry["look_ahead"],
        steps={name: arrays[f"{place}/steps/{name}"] for name in entry["steps"]},
        projection=Projection(**entry.get("projection", {})),
    )


def _read_norm(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NormRecord:
    place = f"norms/{entry['name']}"
    given: dict[str, Any] = {name: arrays[f"{place}/{name}"] for name in _NORM_ARRAYS}
    return NormRecord(**entry, **given, recorded=arrays.get(f"{place}/output"))
