"""From a registry entry, a hub id or a folder to a model that runs."""

from pathlib import Path

import torch

from model.download.entries import OWN_BERT, Entry, fetched
from model.download.hub_folder import CONFIG, check_memory, checked_size, read_json
from model.download.wheel import Progress
from model.hub.claims import check_claims
from model.hub.library import missing_library
from model.loading.bert import load_bert
from model.loading.random_weights import load_untrained
from model.loading.shipped import ASSETS, DamagedError, load_asset
from model.run.model import Model
from model.run.protocols import cannot_be_shown
from model.run.recorded import RecordedModel
from model.system.files import NotReadError
from model.system.settings import settings
from model.trace.trace_file import load_trace
from model.trace.uploaded import FORGOTTEN


def registered(entry: Entry, device: str | None, progress: Progress, most_bytes: int) -> Model:
    """A model of the registry or of the hub, downloaded first where it is not on this computer.

    Args:
        device: None: as `device_of` chooses.
        progress: is told what is being done, and the share done, 0 to 1, if known.
        most_bytes: of memory, for a model that does not ship; 0: no bound.
    """
    if entry.untrained:
        return Model(entry.name, *load_untrained(entry.name, most_bytes), device_of(device))
    if entry.ships:
        return Model(entry.name, *load_asset(ASSETS / entry.name)[:2], device_of(device))
    folder = fetched(entry, progress)
    if entry.name == OWN_BERT:
        return Model(entry.name, *load_bert(folder), device_of(device))
    return from_hub_layout(folder, entry.name, device, progress, most_bytes)


def recorded_run(name: str, path: Path | None) -> RecordedModel:
    """The run of a trace file. path: where it lies; None: it was dropped on a page, and nobody keeps it."""
    if path is None:
        raise ValueError(FORGOTTEN)
    return RecordedModel(name, load_trace(path))


def from_folder(
    folder: Path, name: str, device: str | None, progress: Progress, most_bytes: int
) -> Model:
    """A model in the layout of `model/assets`, or of the hub, whose configs have a type.

    Args:
        name: as the model is called afterwards.
        device, progress, most_bytes: as in `registered`.
    """
    try:
        is_of_hub = "model_type" in read_json(folder / CONFIG)
    except NotReadError:
        raise
    except ValueError:
        is_of_hub = False
    if is_of_hub:
        return from_hub_layout(folder, name, device, progress, most_bytes)
    try:
        return Model(name, *load_asset(folder)[:2], device_of(device))
    except DamagedError as error:
        raise ValueError(error.what) from error


def from_hub_layout(
    folder: Path, name: str, device: str | None, progress: Progress, most_bytes: int
) -> Model:
    """A model in Hugging Face's library, with our hooks.

    Args:
        name: as the model is called afterwards.
        device, progress, most_bytes: as in `registered`.

    Raises ValueError, with a sentence, for one that cannot be shown truly.
    """
    place = device_of(device)
    try:
        check_memory(checked_size(folder), most_bytes)
        check_claims(folder)
        if missing := missing_library():
            raise ValueError(f"it needs {missing}")
        from model.hub.loading import load_hub  # Hugging Face's library takes seconds to import

        return load_hub(folder, name, place, progress)
    except NotReadError:
        raise
    except ValueError as refusal:
        raise cannot_be_shown(name, refusal) from refusal


def by_layer(entry: Entry, name: str, progress: Progress) -> Model:
    """A model in the hub's layout whose layers are read from its files one after the other, in every pass
    anew. Raises ValueError for one in another layout, and as `load_model` does."""
    if entry.recorded:
        raise ValueError(f"{name} is a recorded run: it has no layers to be read.")
    if entry.ships or entry.untrained:
        raise ValueError(f"{name} is small and has no files to be read layer by layer.")
    folder = entry.folder or fetched(entry, progress)
    try:
        check_claims(folder)
        if missing := missing_library():
            raise ValueError(f"it needs {missing}")
        from model.hub.loading import load_by_layer

        return load_by_layer(folder, name, progress)
    except NotReadError:
        raise
    except ValueError as refusal:
        raise cannot_be_shown(name, refusal) from refusal


def device_of(name: str | None) -> torch.device:
    """The device that the call or the server's owner names; else CUDA or a Mac's graphics processor, where
    there is one. Raises ValueError where one is named that is not there."""
    name = name or settings().device
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next((kind for kind, is_there in there.items() if is_there), "cpu")
    kind = name.partition(":")[0]
    if not there.get(kind, True):
        raise ValueError(
            f"ATTENTION_DEVICE names {kind.upper()}, but PyTorch finds no {kind.upper()} device on this "
            "computer."
        )
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise ValueError(
            f"device is {name!r}; it must be one that PyTorch knows, such as 'cpu', 'cuda' or 'mps'."
        ) from error
