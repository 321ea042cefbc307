"""What the file of a trace holds, and its writing: a description, and every array by its name."""

import io
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from model.nn.intervention import Intervention
from model.nn.patches import Patch
from model.system.version import PRODUCT
from model.trace import array_file
from model.trace.description import FORMAT, VERSION
from model.trace.fitting_arrays import EXPERT_ARRAYS, NORM_ARRAYS, VECTORS
from model.trace.records import Attention, Token
from model.trace.unproven import NO_WEIGHTS, proven, proven_states

KEY = "trace"  # of the metadata
Trace = Any  # a Trace, whose module imports this one

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
    "module",
    "doubt",
)
Arrays = Mapping[str, NDArray[Any]]
Written = Mapping[str, Any]  # what JSON holds


def trace_file(trace: Trace) -> bytes:
    """The whole trace as safetensors: every recorded array, and all names in the metadata.

    `read_trace` gives the same trace again, array by array, bit by bit.
    """
    file = io.BytesIO()
    _write(trace, file)
    return file.getvalue()


def save_trace(trace: Trace, path: Path) -> None:
    """Writes the file beside its place, then puts it there: what is there is always whole."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            _write(trace, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _write(trace: Trace, file: BinaryIO) -> None:
    kept, same = _without_repeats(_arrays(trace))
    array_file.write(file, kept, KEY, json.dumps(_description(trace) | {"same": same}))


def _description(trace: Trace) -> dict[str, Any]:
    """All that the file says beside its arrays."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": PRODUCT,
        "model": trace.model,
        "text": trace.text,
        "device": trace.device,
        "config": None if trace.config is None else asdict(trace.config),
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
        "unproven": {
            part: why for part, why in trace.unproven.items() if NO_WEIGHTS.get(part) != why
        },
    }


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
        for name, vectors in zip(VECTORS, attention.vectors, strict=True):
            arrays[f"{place}/{name}"] = vectors
        arrays |= {f"{place}/output": attention.output, f"{place}/mask": attention.own_mask}
        arrays |= {f"{place}/bias": attention.bias, f"{place}/sinks": attention.sinks}
        arrays |= {f"{place}/steps/{name}": step for name, step in attention.steps.items()}
    for norm in proven(trace.norms):
        place = f"norms/{norm.name}"
        arrays |= {f"{place}/{name}": getattr(norm, name) for name in NORM_ARRAYS}
        arrays[f"{place}/output"] = norm.recorded
    for record in proven(trace.feed_forward):
        place = f"feed_forward/{record.name}"
        arrays |= {f"{place}/before": record.before, f"{place}/hidden": record.hidden}
    for routed in trace.experts:
        place = f"experts/{routed.name}"
        arrays |= {f"{place}/{name}": getattr(routed, name) for name in EXPERT_ARRAYS}
    arrays |= {f"written/{name}": written for name, written in trace.written.items()}
    if logits is not None and trace.vocabulary is not None:
        named = trace.vocabulary.arrays().items()
        arrays |= {f"vocabulary/{name}": array for name, array in named}
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
            kept[name] = array
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
