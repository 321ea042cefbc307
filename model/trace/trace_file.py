"""A trace as a file for other programs, and back. docs/trace-format.md describes its layout."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from model.nn.config import Projection, Reasons, Stack
from model.nn.intervention import Intervention
from model.nn.patches import Patch
from model.nn.places import Place
from model.trace.arrays import Array, read_only
from model.trace.experts import ExpertsRecord
from model.trace.records import Attention, FeedForwardRecord, NormRecord, Token
from model.trace.trace import Logits, Trace
from model.trace.unproven import WORDS, proven, proven_states

FORMAT, VERSION = "attention-visualizer trace", 1
_VECTORS = ("query", "key", "value")
_NORM_ARRAYS = ("input", "mean", "inverse_deviation", "gamma", "beta")
_EXPERT_ARRAYS = ("logits", "weights", "chosen")
_ATTENTION_FIELDS = (
    "name",
    "kind",
    "stack",
    "layer",
    "heads",
    "scale",
    "look_ahead",
    "cap",
    "window",
)
Arrays = Mapping[str, NDArray[Any]]
Written = Mapping[str, Any]  # what JSON holds


def trace_file(trace: Trace) -> bytes:
    """The whole trace as safetensors: every recorded array, and all names in the metadata.

    `read_trace` gives the same trace again, array by array, bit by bit.
    """
    kept, same = _without_repeats(_arrays(trace))
    description = {
        "format": FORMAT,
        "version": VERSION,
        "model": trace.model,
        "text": trace.text,
        "device": trace.device,
        "intervention": _written_intervention(trace.intervention),
        "tokens": [_written_token(token) for token in trace.tokens],
        "target_tokens": [_written_token(token) for token in trace.target_tokens],
        "attention": [_written_attention(attention) for attention in trace.attention],
        "norms": [
            {"name": norm.name, "kind": norm.kind, "epsilon": norm.epsilon}
            for norm in proven(trace.norms)
        ],
        "feed_forward": [record.name for record in proven(trace.feed_forward)],
        "experts": [record.name for record in trace.experts],
        "written": list(trace.written),
        "states": {stack: len(states) for stack, states in proven_states(trace.residual).items()},
        "summands": {stack: list(of) for stack, of in proven_states(trace.summands).items()},
        "unproven": dict(trace.unproven),
        "same": same,
    }
    return save(kept, {"trace": json.dumps(description)})


def read_trace(file: bytes) -> Trace:
    """The trace of a file that `trace_file` wrote. Raises ValueError for any other file."""
    try:
        arrays = {name: read_only(array) for name, array in load(file).items()}
        header = json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")])
        description = json.loads(header["__metadata__"]["trace"])
        if (description["format"], description["version"]) != (FORMAT, VERSION):
            raise ValueError("It has another format or version.")
        same = {name: arrays[other] for name, other in description["same"].items()}
        return _read(description, arrays | same)
    except (SafetensorError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"This file does not hold a readable trace: {error}") from error


def _arrays(trace: Trace) -> Arrays:
    """Every recorded array by its name in the file."""
    logits = None if "logits" in trace.unproven else trace.logits
    arrays: dict[str, NDArray[Any] | None] = {"angles": trace.angles, "logits": logits}
    for stack, states in proven_states(trace.residual).items():
        arrays |= {f"states/{stack}/{number}": state for number, state in enumerate(states)}
    for stack, parts in proven_states(trace.summands).items():
        arrays |= {f"summands/{stack}/{name}": part for name, part in parts.items()}
    for attention in trace.attention:
        place = f"attention/{attention.name}"
        for name, vectors in zip(_VECTORS, attention.vectors, strict=True):
            arrays[f"{place}/{name}"] = vectors
        arrays |= {f"{place}/output": attention.output, f"{place}/mask": attention.own_mask}
        arrays |= {f"{place}/bias": attention.bias, f"{place}/sinks": attention.sinks}
        arrays |= {f"{place}/steps/{name}": step for name, step in attention.steps.items()}
    for norm in proven(trace.norms):
        place = f"norms/{norm.name}"
        arrays |= {f"{place}/{name}": getattr(norm, name) for name in _NORM_ARRAYS}
        arrays[f"{place}/output"] = norm.recorded
    for record in proven(trace.feed_forward):
        place = f"feed_forward/{record.name}"
        arrays |= {f"{place}/before": record.before, f"{place}/hidden": record.hidden}
    for routed in trace.experts:
        place = f"experts/{routed.name}"
        arrays |= {f"{place}/{name}": getattr(routed, name) for name in _EXPERT_ARRAYS}
    arrays |= {f"written/{name}": written for name, written in trace.written.items()}
    return {name: array for name, array in arrays.items() if array is not None}


def _without_repeats(arrays: Arrays) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays to store; and for each array that shares an earlier one's memory, the name of that
    one: the input of a norm is a state of the stream, and is stored once."""
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


def _written_token(token: Token) -> Written:
    return asdict(token) | {"raw": token.raw.hex()}


def _written_attention(attention: Attention) -> Written:
    return {name: getattr(attention, name) for name in _ATTENTION_FIELDS} | {
        "fill": str(attention.mask_value),  # JSON has no infinity
        "ablated": attention.ablated,
        "weights_set": attention.weights_set,
        "steps": list(attention.steps),
        "projection": asdict(attention.projection),
    }


def _written_intervention(intervention: Intervention) -> Written:
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in vars(intervention).items()
    } | {"fill": str(intervention.fill), "patch": _written_patch(intervention.patch)}


def _written_patch(patch: Patch | None) -> Written | None:
    return None if patch is None else asdict(patch) | {"parts": sorted(patch.parts)}


def _read_intervention(written: Written) -> Intervention:
    patch = written.get("patch")  # files of earlier versions lack it
    return Intervention(
        **{**written, "fill": float(written["fill"]), "patch": patch and Patch(**patch)}
    )


def _read(description: Written, arrays: Arrays) -> Trace:
    states: dict[Stack, tuple[Array, ...]] = {
        stack: tuple(arrays[f"states/{stack}/{number}"] for number in range(count))
        for stack, count in description["states"].items()
    }
    return Trace(
        model=description["model"],
        text=description["text"],
        intervention=_read_intervention(description["intervention"]),
        tokens=tuple(map(_read_token, description["tokens"])),
        target_tokens=tuple(map(_read_token, description["target_tokens"])),
        attention=tuple(_read_attention(entry, arrays) for entry in description["attention"]),
        norms=tuple(_read_norm(entry, arrays) for entry in description["norms"]),
        residual=states,
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
        device=description.get("device", ""),  # files of earlier versions lack it and what follows
        experts=tuple(
            ExpertsRecord(name, *(arrays[f"experts/{name}/{of}"] for of in _EXPERT_ARRAYS))
            for name in description.get("experts", ())
        ),
        written={name: arrays[f"written/{name}"] for name in description.get("written", ())},
        unproven=_read_unproven(description.get("unproven", {})),
    )


def _read_token(written: Written) -> Token:
    span = None if written["span"] is None else tuple(written["span"])
    return Token(**{**written, "raw": bytes.fromhex(written["raw"]), "span": span})


def _read_attention(entry: Written, arrays: Arrays) -> Attention:
    place = f"attention/{entry['name']}"
    query, key, value = (arrays[f"{place}/{name}"] for name in _VECTORS)
    _refuse_wrong_stages(entry, arrays, query.shape[1], key.shape[1])
    return Attention(
        Place(entry["stack"], entry["layer"], entry["kind"]),
        entry["heads"],
        entry["scale"],
        look_ahead=entry["look_ahead"],
        mask_value=float(entry["fill"]),
        output=arrays[f"{place}/output"],
        ablated=tuple(entry["ablated"]),
        vectors=(query, key, value),
        own_mask=arrays.get(f"{place}/mask"),
        steps={name: arrays[f"{place}/steps/{name}"] for name in entry["steps"]},
        projection=Projection(**entry.get("projection", {})),
        weights_set=tuple(map(tuple, entry.get("weights_set", ()))),
        cap=entry.get("cap"),
        bias=arrays.get(f"{place}/bias"),
        sinks=arrays.get(f"{place}/sinks"),
        window=entry.get("window"),
    )


def _refuse_wrong_stages(entry: Written, arrays: Arrays, queries: int, keys: int) -> None:
    """Raises ValueError for a cap, window, bias or sinks that no pass can have."""
    place, heads, cap, window = entry["name"], entry["heads"], entry.get("cap"), entry.get("window")
    if cap is not None and not (type(cap) in (int, float) and 0 < cap < math.inf):
        raise ValueError(f"The cap of {place} is {cap!r}; it must be a number above 0.")
    if window is not None and not (type(window) is int and window > 0):
        raise ValueError(f"The window of {place} is {window!r}; it must be a number of keys.")
    sinks, bias = (arrays.get(f"attention/{place}/{name}") for name in ("sinks", "bias"))
    if sinks is not None and sinks.shape != (heads,):
        raise ValueError(f"The sinks of {place} have the shape {sinks.shape}, not ({heads},).")
    whole = heads, queries, keys
    if bias is not None and not (
        bias.ndim == 3 and all(a in (1, b) for a, b in zip(bias.shape, whole, strict=True))
    ):
        raise ValueError(f"The biases of {place} have the shape {bias.shape}, not {whole}.")


def _read_unproven(written: object) -> Reasons:
    """Why parts are not proven. Raises ValueError for parts that no model has."""
    if not isinstance(written, dict) or not all(
        part in WORDS and isinstance(reason, str) for part, reason in written.items()
    ):
        raise ValueError(f"The parts that are not proven are {written!r}.")
    return written


def _read_norm(entry: Written, arrays: Arrays) -> NormRecord:
    place = f"norms/{entry['name']}"
    given: dict[str, Any] = {name: arrays[f"{place}/{name}"] for name in _NORM_ARRAYS}
    return NormRecord(**entry, **given, recorded=arrays.get(f"{place}/output"))
