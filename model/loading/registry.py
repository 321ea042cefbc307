"""What can be chosen, and how each model is loaded."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from model.download.entries import ENTRIES, HUB_ENTRIES, OWN_BERT, Entry, is_on_disk
from model.download.hub import is_hub_id
from model.download.wheel import Progress
from model.loading.untrained import UNTRAINED, untrained_bytes
from model.system.border import at_border, meant
from model.system.settings import MEGABYTE, Settings, settings
from model.trace.uploaded import ENDING, is_uploaded

if TYPE_CHECKING:
    from model.run.model import Model

__all__ = [
    "OWN_BERT",
    "Entry",
    "Registry",
    "hub_models",
    "load_model",
    "models",
    "untrained_models",
]

RECORDED_RUN = "Recorded run"
SMALL = 100 * MEGABYTE  # an untrained model up to this size is open to every visitor


class Registry(Mapping[str, Entry]):
    """The registered models by name, as far as the server's owner allows them. A key may also be a
    name, an id ("org/name") or a folder of the hub's models that is not listed.

    >>> from model import models
    >>> list(models)[:3], "stories" in models
    (['house-gpt', 'stories', 'translate-en-fr'], True)
    >>> models.title("stories"), models.short_title("stories"), models.found("no such model")
    ('Stories (GPT, 2 layers × 4 heads)', 'Stories', None)
    """

    def __init__(self, entries: tuple[Entry, ...], others: tuple[Entry, ...]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._known = self._entries | {entry.name: entry for entry in others}
        self._known |= {entry.hub: entry for entry in others if entry.hub is not None}

    def __iter__(self) -> Iterator[str]:
        chosen = settings().models
        if chosen is None:
            return iter(self._entries)
        more = (name for name in chosen if name not in self._entries and self.found(name))
        return iter([*self._entries, *more])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in (self._entries if settings().models is None else tuple(self))

    def __getitem__(self, name: str) -> Entry:
        entry = self.found(name)
        if entry is None:
            raise KeyError(name)
        return entry

    def found(self, name: str) -> Entry | None:
        """The model of a name; None for one that cannot be loaded here."""
        allowed = settings()
        if is_uploaded(name):
            return (
                Entry(name, RECORDED_RUN, None, "", recorded=True) if allowed.trace_files else None
            )
        entry = self._described(name, allowed)
        if entry is None or entry.name in self._entries:
            return entry
        if allowed.fetch is not None and allowed.fetch in {name, entry.name, entry.hub}:
            return entry
        if allowed.models is not None:
            return entry if {name, entry.name, entry.hub} & set(allowed.models) else None
        if entry.untrained and untrained_bytes(entry.name) <= SMALL:
            return entry
        may_open = allowed.other_models if entry.folder is None else allowed.folders
        return entry if may_open else None

    def title(self, name: str) -> str:
        """A model's title; the name of one that cannot be loaded here."""
        entry = self.found(name)
        return name if entry is None else entry.title

    def short_title(self, name: str) -> str:
        """The same without the sizes, for a sentence."""
        entry = self.found(name)
        return name if entry is None else entry.short_title

    def _described(self, name: str, allowed: Settings) -> Entry | None:
        if name in self._known:
            return self._known[name]
        # Where no folder may be opened none is looked for: nobody must learn which ones exist.
        may_be_folder = allowed.folders or name in (allowed.models or ())
        if may_be_folder and _is(Path.is_dir, name):
            return Entry(name, Path(name).name or name, None, "", folder=Path(name))
        if may_be_folder and name.endswith(ENDING) and _is(Path.is_file, name):
            title = f"{Path(name).name} ({RECORDED_RUN.lower()})"
            return Entry(name, title, None, "", folder=Path(name), recorded=True)
        if "/" in name and is_hub_id(name):
            return Entry(name, name, None, "", hub=name)
        return None


_UNTRAINED_ENTRIES = tuple(one.entry for one in UNTRAINED)
models = Registry(ENTRIES, (*HUB_ENTRIES, *_UNTRAINED_ENTRIES))
hub_models: Mapping[str, Entry] = Registry(HUB_ENTRIES, ())
untrained_models: Mapping[str, Entry] = {entry.name: entry for entry in _UNTRAINED_ENTRIES}


def untrained() -> list[str]:
    """The models with random weights that may be opened here."""
    return [name for name in untrained_models if models.found(name) is not None]


def others_allowed() -> bool:
    """Whether the server's owner lets visitors open models that are not listed."""
    allowed = settings()
    return allowed.models is None and (allowed.other_models or allowed.folders)


def known(name: str) -> Entry:
    """The model of a name, an id or a folder. Raises ValueError with a sentence if none may be opened."""
    entry = models.found(name)
    if entry is None:
        raise ValueError(_unknown(name))
    return entry


def may_be_linked(name: str) -> bool:
    """Whether a link may open a model: a registered one, or another that is on this computer."""
    if name in models:
        return True
    entry = models.found(name)
    if entry is None:
        return False
    if entry.folder is not None and not entry.recorded:
        return (entry.folder / "config.json").is_file()
    return is_on_disk(entry)


def silent(sentence: str, share: float | None) -> None:
    """A progress callback that does nothing."""


@at_border
def load_model(
    name: str | Path,
    *,
    device: str | None = None,
    progress: Progress = silent,
    most_bytes: int = 0,
) -> "Model":
    """A model by its name, by its id on the Hugging Face hub, or from a folder, downloaded where it is
    not on this computer; or the recorded run of a trace file.

    Args:
        name: one of `models`, `hub_models` and `untrained_models`, an id of the hub, or a path. A folder is
            in the layout of `model/assets` or of the hub.
        device: None: that of ATTENTION_DEVICE, else CUDA or a Mac's graphics processor, where there is one.
        progress: is told what is being done, and the share done, 0 to 1, if known.
        most_bytes: of memory, for a model that does not ship; 0: no bound.

    Raises ValueError with a sentence for the page when the model is unknown, damaged, out of reach, or fails
    its check.

    >>> from model import load_model
    >>> load_model("house-gpt").trace("The cat sat on the mat")
    <Trace of house-gpt: 6 tokens, 4 attention layers>
    """
    name = named(name)
    progress("Starting PyTorch", None)
    import torch

    from model.loading import loading
    from model.system.memory import enough_memory

    if (threads := settings().threads) is not None:
        torch.set_num_threads(threads)  # of one pass, in every thread to come
    entry = known(name)
    with enough_memory(f"the model {name[:60]}"):
        if entry.recorded:
            return loading.recorded_run(name, entry.folder)
        if entry.folder is not None:
            return loading.from_folder(entry.folder, name, device, progress, most_bytes)
        return loading.registered(entry, device, progress, most_bytes)


def named(name: object) -> str:
    """What a model is asked for by. A path names a folder or a file. Raises ValueError for anything else."""
    if isinstance(name, PurePath):
        return str(name) if len(name.parts) > 1 or name.is_absolute() else f".{os.sep}{name}"
    if not isinstance(name, str):
        raise ValueError(
            f"A model is asked for by its name or its path, not by {type(name).__name__}."
        )
    return name


def _unknown(name: str) -> str:
    near = meant(name, (*models, *untrained(), *hub_models))
    if not near and settings().folders and _is(Path.is_dir, os.path.dirname(name) or "."):
        near = meant(name, (str(one) for one in Path(os.path.dirname(name)).iterdir()))
    here = f"The models are {', '.join(models)}"
    if untrained():
        here += f"; untrained: {', '.join(untrained())}"
    if not settings().other_models:
        return f"There is no model {name[:60]!r} here{near}. {here}."
    return (
        f"There is no model {name[:60]!r}{near}. {here}; of the Hugging Face hub: {', '.join(hub_models)}, "
        "and any other model of it, written as organisation/name."
    )


def _is(kind: Callable[[Path], bool], name: str) -> bool:
    try:
        return bool(name) and kind(Path(name))
    except (OSError, ValueError):  # no path can have this name
        return False
