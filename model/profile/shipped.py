"""The profiles that ship with the app: `python -m tools.training.profiles` makes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

from pydantic import TypeAdapter

from model.profile.corpus_profile import Profile, open_profile
from model.run.weights_hash import weights_hash

if TYPE_CHECKING:
    from model.run.model import Model

FOLDER = Path(__file__).with_name("profiles")
MADE = "made.json"
_STEP = "-step-"  # between a model and the step of its training whose weights were profiled


@dataclass(frozen=True)
class Made:
    """Over which text a profile was made, and how."""

    text: str  # what it is, after "tokens of"
    source: str  # of the text, and its licence
    seconds: float
    workers: int  # processes; 0: one
    machine: str
    date: str  # when it was whole


def made(folder: Path) -> Made:
    """How a shipped profile was made. Raises OSError or ValueError where that is not known."""
    return TypeAdapter(Made).validate_json((folder / MADE).read_bytes())


def at_step(model: str, step: int) -> str:
    """The name of the profile of a model as it was after so many steps of its training."""
    return f"{model}{_STEP}{step}"


def model_and_step(name: str) -> tuple[str, int | None]:
    """The model of a shipped profile, and the training step whose weights were profiled; None: the last."""
    model, _, step = name.partition(_STEP)
    return model, int(step) if step else None


def shipped_profiles() -> Mapping[str, Path]:
    """The folders of the profiles that are here, by their names: each model's, and after it those of its
    checkpoints."""
    return {folder.name: folder for folder in sorted(FOLDER.glob("*")) if folder.is_dir()}


@lru_cache(maxsize=8)
def shipped_profile(name: str) -> Profile | None:
    """The profile of a model by its name; None where none is here."""
    folder = shipped_profiles().get(name)
    return None if folder is None else open_profile(folder)


def profile_of(model: "Model") -> Profile | None:
    """The shipped profile of a model; None where there is none, or where it was made of other weights: the
    hub's copy of a model is not the copy with 4-bit weights."""
    found = shipped_profile(model.name) if model.runs else None
    return found if found and found.about.weights == weights_of(ref(model)) else None


@lru_cache(maxsize=8)
def weights_of(model: "ref[Model]") -> str:
    """The hash of a model's weights, computed once while it lives."""
    there = model()
    return "" if there is None else weights_hash(there)
