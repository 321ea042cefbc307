"""A trace without its large arrays, as it travels; and the way to each array in the trace that stays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.nn.config import Stack
from model.trace.trace import Trace
from model.trace.unproven import proven, proven_states

Path = tuple[
    str | int, ...
]  # ("attention", 3, "vectors"), ("residual", "decoder", 2), ("logits", 4, 5)
Fields = dict[str, Any]

# The large fields of each kind of record. What is None or empty is told in the outline.
LARGE: Mapping[str, tuple[str, ...]] = {
    "attention": ("output", "vectors", "own_mask", "steps", "bias"),
    "norms": ("input", "mean", "inverse_deviation", "gamma", "beta", "recorded"),
    "feed_forward": ("before", "kept"),
    "experts": ("logits", "weights", "chosen"),
}
CHECKED = ("attention", "norms")
SMALL = 2_000_000  # bytes of a trace that travels whole: to ask for each part takes longer


@dataclass(frozen=True)
class Outline:
    """What a trace is, and the sizes of what it holds."""

    whole: Fields  # the fields that travel as they are
    records: Mapping[str, tuple[Fields, ...]]  # by kind, without their large fields
    residual: Mapping[Stack, int]  # states
    summands: Mapping[Stack, tuple[str, ...]]  # names
    written: tuple[str, ...]
    has_angles: bool
    logits: tuple[int, int] | None  # (token, vocabulary)
    vocabulary: int | None
    nbytes: int
    along: Mapping[Path, Any]  # parts that travel with it


def outline_of(trace: Trace) -> Outline:
    """The outline of a trace."""
    told = (
        "model",
        "text",
        "intervention",
        "tokens",
        "target_tokens",
        "device",
        "unproven",
        "config",
    )
    return Outline(
        whole={name: getattr(trace, name) for name in told},
        records={kind: tuple(_small(kind, one) for one in _records(trace, kind)) for kind in LARGE},
        residual={stack: len(states) for stack, states in proven_states(trace.residual).items()},
        summands={stack: tuple(parts) for stack, parts in proven_states(trace.summands).items()},
        written=tuple(trace.written),
        has_angles=trace.angles is not None,
        logits=None if trace.prediction is None else trace.prediction.shape,
        vocabulary=None if trace.vocabulary is None else trace.vocabulary.size,
        nbytes=trace.nbytes,
        along=dict(_parts(trace)) if trace.nbytes <= SMALL else {},
    )


def _parts(trace: Trace) -> Iterator[tuple[Path, Any]]:
    """What pages read of a trace, but its logits."""
    for kind, names in LARGE.items():
        for number, record in enumerate(_records(trace, kind)):
            held = ((name, getattr(record, name)) for name in names)
            yield from (((kind, number, name), part) for name, part in held if _holds(part))
            if kind in CHECKED:
                yield (kind, number, "check"), record.check()
    for stack, states in proven_states(trace.residual).items():
        yield from ((("residual", stack, number), state) for number, state in enumerate(states))
    for stack, parts in proven_states(trace.summands).items():
        yield from ((("summands", stack, name), parts[name]) for name in parts)
    yield ("check",), trace.check()


def at(trace: Trace, path: Path) -> Any:
    """What lies at a path of a trace. Raises LookupError for a path that no trace has."""
    match path:
        case (kind, int(number), "check") if kind in CHECKED:
            return _records(trace, str(kind))[number].check()
        case (str(kind), int(number), str(name)) if name in LARGE.get(kind, ()):
            return getattr(_records(trace, kind)[number], name)
        case ("residual", ("encoder" | "decoder") as stack, int(state)):
            return trace.residual[stack][state]
        case ("summands", ("encoder" | "decoder") as stack, str(name)):
            return trace.summands[stack][name]
        case ("written", str(name)):
            return trace.written[name]
        case ("angles",):
            return trace.angles
        case ("logits", int(first), int(end)):
            return trace.require_prediction().rows(first, end)
        case ("check",):
            return trace.check()
    raise LookupError(f"No trace has {path!r}.")


def record_at(trace: Trace, path: Path) -> Any:
    """The record of a path: ("attention", 3)."""
    kind, number = path
    return _records(trace, str(kind))[int(number)]


def records_of(trace: Trace) -> dict[int, Path]:
    """The path of each record, by its identity."""
    return {
        id(one): (kind, number)
        for kind in LARGE
        for number, one in enumerate(_records(trace, kind))
    }


def _records(trace: Trace, kind: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = proven(getattr(trace, kind))
    return found


def _small(kind: str, record: Any) -> Fields:
    """The fields of a record but those that are large."""
    large = {name for name in LARGE[kind] if _holds(getattr(record, name))}
    fields = {name: value for name, value in vars(record).items() if name not in large}
    return fields | ({"sizes": record.sizes} if kind == "attention" else {})


def _holds(field: Any) -> bool:
    """Whether a field has numbers."""
    return field.size > 0 if isinstance(field, np.ndarray) else bool(field)
