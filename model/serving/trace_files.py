"""Trace files that an engine opens: their names, and their runs where a model is expected."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from model.loading.registry import models
from model.system.memory import enough_memory
from model.trace.trace import Trace
from model.trace.trace_file import load_trace, read_trace_of
from model.trace.uploaded import FORGOTTEN, is_recording, is_uploaded

if TYPE_CHECKING:
    from model.run.recorded import RecordedModel


class File(NamedTuple):
    """The key of a trace file's run. changed: when the file was; 0 where its name says what it holds, and
    for one that is gone."""

    model: str
    changed: int


def file_of(name: str) -> File:
    """The key of a trace file as it is now."""
    if is_uploaded(name):
        return File(name, 0)
    try:
        return File(name, Path(name).stat().st_mtime_ns)
    except (OSError, ValueError):  # it is gone; reading it will say so
        return File(name, 0)


def opens_file(name: str) -> bool:
    """Whether a model's name is that of a trace file that may be opened."""
    entry = models.found(name) if is_recording(name) else None
    return entry is not None and entry.recorded


def as_model(file: File, trace: Trace) -> "RecordedModel":
    """The run of a file where a model is expected."""
    from model.run.recorded import RecordedModel  # imports torch: pages are drawn first

    return RecordedModel(file.model, trace, file.changed)


def run_of_file(file: File, most_bytes: int) -> Trace:
    """The run of a trace file. Raises ValueError for one that is not kept any more, for one that has been
    written anew, for more tokens than a page shows, and as `load_trace`."""
    if is_uploaded(file.model):
        raise ValueError(FORGOTTEN)
    name = Path(file.model).name
    with enough_memory(f"the trace file {name[:60]}"):
        trace = shown(load_trace(file.model, most_bytes=most_bytes))
    if file_of(file.model) != file:
        raise ValueError(f"The trace file {name} has just been written anew. Load this page again.")
    return trace


def run_of_uploaded(file: BytesIO, size: int, most_bytes: int) -> Trace:
    """The run of a file that was dropped on a page. Raises ValueError for more tokens than a page shows, and
    as `load_trace`."""
    with enough_memory("this trace file"):
        return shown(read_trace_of(file, size, most_bytes))


def shown(trace: Trace) -> Trace:
    """The same run. Raises ValueError where a layer reads more tokens than a page shows."""

    from model.run.protocols import check_shown  # imports torch: pages are drawn first

    check_shown(max(size for one in trace.attention for size in one.sizes[1:]))
    return trace
