"""A pass of a model, written to a file: on a large machine, to be looked at on a small one."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from model.loading.registry import load_model, models, silent
from model.system.border import at_border
from model.system.files import made_folder
from model.trace.uploaded import ENDING

if TYPE_CHECKING:
    from model.run.model import Model


@at_border
def record(
    model: str,
    text: str | Sequence[int],
    to: str | Path,
    *,
    full: bool = False,
    by_layer: bool = False,
) -> None:
    """Writes the trace of a pass over a text. The trace is in memory until it is written.

    Args:
        model: a name, an id of the hub or a folder.
        text: a text, or token ids.
        to: the file, which `load_trace` reads.
        full: with the activations of feed-forwards.
        by_layer: for a model larger than memory; its layers are read from its files one after the other, in
            float32 on the processor, and forgotten.

    Raises ValueError as `load_model` and `Model.trace`, and by_layer for a model in another layout than the
    hub's.

    >>> from pathlib import Path
    >>> from model.loading.record import record
    >>> record("house-gpt", "The cat sat on the mat", Path("cat.safetensors"))
    >>> Path("cat.safetensors").is_file()
    True
    """
    _written(_opened(model, by_layer), text, to, full=full)


@at_border
def record_lines(
    model: str,
    texts: Iterable[str | Sequence[int]],
    to: str | Path,
    *,
    full: bool = False,
    by_layer: bool = False,
) -> list[Path]:
    """Writes a trace for each text that is not blank into a folder: 001.safetensors, and so on.

    Args:
        to: the folder; it is made where it is missing.
        model, full, by_layer: as in `record`.

    Raises ValueError as `record`, and where no text is left.

    >>> from pathlib import Path
    >>> from model.loading.record import record_lines
    >>> files = record_lines("house-gpt", ["A cat.", "", "A dog."], Path("traces"))
    >>> [file.name for file in files]
    ['001.safetensors', '002.safetensors']
    """
    lines = [text for text in texts if not isinstance(text, str) or text.strip()]
    if not lines:
        raise ValueError("There is no text to be recorded.")
    opened = _opened(model, by_layer)
    to = Path(to)
    to = made_folder(to)
    files = [to / f"{number:03}{ENDING}" for number in range(1, len(lines) + 1)]
    for text, file in zip(lines, files, strict=True):
        _written(opened, text, file, full=full)
    return files


def _opened(name: str, by_layer: bool) -> "Model":
    entry = models.found(name)
    if entry is None or not by_layer:
        return load_model(name)
    from model.loading import loading  # PyTorch takes seconds to import

    return loading.by_layer(entry, name, silent)


def _written(model: "Model", text: str | Sequence[int], to: str | Path, *, full: bool) -> None:
    model.trace(text, record="full" if full else "attention").save(to)
