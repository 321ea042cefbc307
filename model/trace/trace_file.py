"""A trace as a file for other programs, and back. docs/trace-format.md describes its layout."""

import io
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from model.nn.stages import STAGES
from model.system.border import at_border
from model.system.deadline import PassTooLongError
from model.system.files import bounded, opened, there
from model.system.settings import SETTING_OF_TRACES, settings
from model.trace import array_file
from model.trace.array_file import Header
from model.trace.description import (
    ATTENTION_ARRAYS,
    EXPERT_ARRAYS,
    KEY,
    NORM_ARRAYS,
    VECTORS,
    Arrays,
    AttentionEntry,
    Description,
    NormEntry,
    Wanted,
    described,
    fitted,
    holds,
    mask_value,
    trace_file,
)
from model.trace.records import Attention, ExpertsRecord, FeedForwardRecord, NormRecord
from model.trace.trace import Logits, Trace, Vocabulary

__all__ = ["load_trace", "read_arrays", "read_trace", "read_trace_of", "trace_file"]


@at_border
def load_trace(path: str | Path, *, most_bytes: int | None = None) -> Trace:
    """The trace of a file. It is read strictly, and nothing in it is executed.

    most_bytes: a larger file is not read; ATTENTION_TRACE_MB says how many where it is left out.
    Raises ValueError, with a sentence, for a file that holds no trace, is larger, or cannot be read.

    >>> from model import load_trace
    >>> trace.save("pass.safetensors")
    >>> load_trace("pass.safetensors")
    <Trace of house-gpt: 13 tokens, 4 attention layers>
    """
    bound = settings().trace_bytes if most_bytes is None else most_bytes
    with opened(there(path), bound, SETTING_OF_TRACES) as (file, size):
        return read_trace_of(file, size, bound)


def read_trace(file: bytes) -> Trace:
    """The trace of a file's content. Raises ValueError as `load_trace`."""
    return read_trace_of(io.BytesIO(file), len(file))


def read_trace_of(file: BinaryIO, size: int, most_bytes: int | None = None) -> Trace:
    """The trace of an open file of so many bytes. Raises ValueError as `load_trace`."""
    bounded(size, settings().trace_bytes if most_bytes is None else most_bytes, SETTING_OF_TRACES)
    try:
        header = array_file.read_header(file, size, KEY)
        said = described(header.text)
        wanted = fitted(said, header.arrays)
        arrays = read_arrays(file, header, wanted, "what is no number of a pass")
        arrays |= {name: arrays[other] for name, other in said.same.items()}
        return _trace(said, arrays)
    except PassTooLongError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"This file does not hold a readable trace: {error}.") from error


def read_arrays(
    file: BinaryIO, header: Header, wanted: Wanted, otherwise: str
) -> dict[str, NDArray[Any]]:
    """Every array that is wanted of a file, by name.

    Args:
        file: open for reading in bytes.
        header: as `array_file` has read it.
        otherwise: what numbers are that an array may not hold, in a clause of the error.

    Raises ValueError for such numbers.
    """
    arrays = {}
    for name, numbers in wanted.numbers.items():
        arrays[name] = array_file.read_array(file, header, name)
        if not all(holds(arrays[name], one) for one in numbers):
            raise ValueError(f"the array {name} holds {otherwise}")
    return arrays


def grow_beyond(heads: int, *grouped: NDArray[Any]) -> bool:
    """Whether keys or values take more than the bound once they are repeated for every head, as they are when
    they are read."""
    return any(4 * heads * one[0].size > settings().trace_bytes for one in grouped)


def _trace(said: Description, arrays: Arrays) -> Trace:
    vocabulary = None
    if "vocabulary/ends" in arrays:
        vocabulary = Vocabulary.of(
            *(arrays[f"vocabulary/{one}"] for one in ("text", "ends", "special"))
        )
    return Trace(
        model=said.model,
        text=said.text,
        intervention=said.intervention.read(),
        tokens=tuple(entry.read() for entry in said.tokens),
        target_tokens=tuple(entry.read() for entry in said.target_tokens),
        attention=tuple(_attention(entry, arrays) for entry in said.attention),
        norms=tuple(_norm(entry, arrays) for entry in said.norms),
        residual={
            stack: tuple(arrays[f"states/{stack}/{number}"] for number in range(count))
            for stack, count in said.states.items()
        },
        summands={
            stack: {name: arrays[f"summands/{stack}/{name}"] for name in names}
            for stack, names in said.summands.items()
        },
        angles=arrays.get("angles"),
        feed_forward=tuple(
            FeedForwardRecord(
                name, arrays[f"feed_forward/{name}/before"], arrays[f"feed_forward/{name}/hidden"]
            )
            for name in said.feed_forward
        ),
        prediction=Logits.of(arrays["logits"]) if "logits" in arrays else None,
        device=said.device,
        experts=tuple(_experts(name, arrays) for name in said.experts),
        written={name: arrays[f"written/{name}"] for name in said.written},
        unproven=dict(said.unproven),
        config=said.config,
        vocabulary=vocabulary,
    )


def _attention(entry: AttentionEntry, arrays: Arrays) -> Attention:
    place = f"attention/{entry.name}"
    query, key, value = (arrays[f"{place}/{name}"] for name in VECTORS)
    if grow_beyond(entry.heads, key, value):
        raise ValueError(f"the keys or values of {entry.heads:,} heads are more than is read")
    given: dict[str, Any] = {
        field: arrays.get(f"{place}/{name}") for name, field in ATTENTION_ARRAYS.items()
    }
    given |= {one.field: one.of(entry) for one in STAGES if not one.is_array}
    return Attention(
        entry.place,
        entry.heads,
        entry.scale,
        look_ahead=entry.look_ahead,
        mask_value=mask_value(entry.fill),
        ablated=entry.ablated,
        vectors=(query, key, value),
        steps={name: arrays[f"{place}/steps/{name}"] for name in entry.steps},
        projection=entry.projected,
        weights_set=entry.weights_set,
        window=entry.window,
        doubt=entry.doubt,
        **given,
    )


def _norm(entry: NormEntry, arrays: Arrays) -> NormRecord:
    place = f"norms/{entry.name}"
    given: dict[str, Any] = {name: arrays[f"{place}/{name}"] for name in NORM_ARRAYS}
    return NormRecord(
        name=entry.name,
        kind=entry.kind,
        epsilon=entry.epsilon,
        **given,
        recorded=arrays.get(f"{place}/output"),
    )


def _experts(name: str, arrays: Arrays) -> ExpertsRecord:
    logits, weights, chosen = (arrays[f"experts/{name}/{of}"] for of in EXPERT_ARRAYS)
    if chosen.max(initial=0) >= logits.shape[1]:
        raise ValueError(f"{name} chooses an expert that it does not have")
    return ExpertsRecord(name, logits, weights, chosen)
