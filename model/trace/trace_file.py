"""A trace as a file for other programs, and back. docs/trace-format.md describes its layout."""

import io
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from model.nn.stages import STAGES
from model.system.border import at_border
from model.system.files import bounded, opened, there
from model.system.foreign import refusing
from model.system.settings import SETTING_OF_TRACES, settings
from model.trace import array_file
from model.trace.array_file import Header
from model.trace.description import (
    ARRAYS,
    KEY,
    VECTORS,
    Arrays,
    AttentionEntry,
    Description,
    Wanted,
    described,
    fitted,
    holds,
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
    with refusing("This file does not hold a readable trace:"):
        header = array_file.read_header(file, size, KEY)
        said = described(header.text)
        wanted = fitted(said, header.arrays)
        arrays = read_arrays(file, header, wanted, "what is no number of a pass")
        arrays |= {name: arrays[other] for name, other in said.same.items()}
        return _trace(said, arrays)


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
        tokens=said.tokens,
        target_tokens=said.target_tokens,
        attention=tuple(_attention(entry, arrays) for entry in said.attention),
        norms=tuple(
            NormRecord(
                one.name, one.kind, epsilon=one.epsilon, **_fields("norms", one.name, arrays)
            )
            for one in said.norms
        ),
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
            FeedForwardRecord(name, *_fields("feed_forward", name, arrays).values())
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


def _fields(kind: str, name: str, arrays: Arrays) -> dict[str, Any]:
    """The arrays of a record, by its fields."""
    return {
        one.field or short: arrays.get(f"{kind}/{name}/{short}")
        for short, one in ARRAYS[kind].items()
    }


def _attention(entry: AttentionEntry, arrays: Arrays) -> Attention:
    given = _fields("attention", entry.name, arrays)
    query, key, value = (given.pop(name) for name in VECTORS)
    if grow_beyond(entry.heads, key, value):
        raise ValueError(f"the keys or values of {entry.heads:,} heads are more than is read")
    given |= {one.field: one.of(entry) for one in STAGES if not one.is_array}
    return Attention(
        entry.place,
        entry.heads,
        entry.scale,
        look_ahead=entry.look_ahead,
        mask_value=entry.fill,  # type: ignore[arg-type]  # a number once it is validated
        ablated=entry.ablated,
        vectors=(query, key, value),
        steps={name: arrays[f"attention/{entry.name}/steps/{name}"] for name in entry.steps},
        projection=entry.projection,
        weights_set=entry.weights_set,
        window=entry.window,
        doubt=entry.doubt,
        **given,
    )


def _experts(name: str, arrays: Arrays) -> ExpertsRecord:
    record = ExpertsRecord(name, **_fields("experts", name, arrays))
    if record.chosen.max(initial=0) >= record.logits.shape[1]:
        raise ValueError(f"{name} chooses an expert that it does not have")
    return record
