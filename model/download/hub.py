"""Models on the Hugging Face hub: what the hub lists of one, with sizes and hashes, and what of it is here.

Only configs, tokenizers and safetensors count.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.download.hub_folder import TOKENIZER, WANTED, weight_files
from model.download.wheel import cache_folder
from model.system.model_folders import check_files, damaged, manifest
from model.system.settings import settings

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

MANIFEST = "hub.json"  # revision, sizes and hashes, written when all files are whole
SECONDS = 10.0  # to wait for the hub's answer, or for its next bytes
_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
MEANWHILE = "The models on this computer still work"


class UnreachableError(ValueError):
    """The hub did not answer, or this computer must not ask it."""


@dataclass(frozen=True)
class HubFile:
    """One file of a model as the hub lists it."""

    name: str
    size: int
    sha256: str | None  # of large files
    blob: str | None  # git's SHA-1 of small ones


@dataclass(frozen=True)
class Listing:
    """What the hub has of a model."""

    repository: str
    revision: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """Bytes to be fetched."""
        return sum(file.size for file in self.files)


def endpoint() -> str:
    """The address of the hub: HF_ENDPOINT where it is set."""
    return settings().hub


def is_hub_id(name: str) -> bool:
    """Whether a name could be that of a model on the hub: "gpt2", "org/name"."""
    return len(name) <= 96 and _ID.fullmatch(name) is not None and ".." not in name


def hub_folder(repository: str) -> Path:
    """The folder of a hub model: our own, or that of the hub's library if another program fetched it."""
    own = cache_folder(repository.replace("/", "--"))
    if is_whole(own):
        return own
    shared = _shared_folder(repository)
    return shared if shared is not None and _has_weights(shared) else own


def _shared_folder(repository: str) -> Path | None:
    """The newest snapshot in the cache of the hub's library. (To import the library takes long.)"""
    place = settings().hub_cache_folder / f"models--{repository.replace('/', '--')}"
    try:
        revision = (place / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return place / "snapshots" / revision


def is_whole(folder: Path) -> bool:
    """Whether every file of a model from the hub has arrived in a folder."""
    return (folder / MANIFEST).is_file()


def is_here(repository: str) -> bool:
    """Whether a model of the hub is on this computer."""
    folder = hub_folder(repository)
    return is_whole(folder) or _has_weights(folder)


def _has_weights(folder: Path) -> bool:
    try:
        return folder.is_dir() and bool(weight_files(folder))
    except ValueError:
        return False


def listed(repository: str) -> Listing:
    """What the hub has of a model: files, sizes, hashes.

    Raises ValueError, with a sentence, if the hub cannot be reached or has nothing that can be
    loaded.
    """
    found = _asked(repository)
    siblings = found.siblings or ()
    files = tuple(
        HubFile(
            sibling.rfilename,
            sibling.size or 0,
            None if sibling.lfs is None else sibling.lfs.sha256,
            sibling.blob_id,
        )
        for sibling in siblings
        if WANTED.fullmatch(sibling.rfilename)
    )
    _check_listing(repository, files, [sibling.rfilename for sibling in siblings])
    return Listing(repository, found.sha or "main", files)


def _asked(repository: str) -> "ModelInfo":
    """The hub's answer about a model. Raises ValueError, with a sentence, where there is none."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        HTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        return HfApi(endpoint=endpoint()).model_info(
            repository, files_metadata=True, timeout=SECONDS
        )
    except GatedRepoError as error:
        raise ValueError(
            f"{repository} asks its users to accept a licence on the hub first. Do so there, and "
            "log in on this computer."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ValueError(f"The hub has no public model {repository!r}.") from error
    except OfflineModeIsEnabled as error:
        raise UnreachableError(
            f"{repository} is not on this computer, and HF_HUB_OFFLINE forbids asking the hub. "
            f"{MEANWHILE}."
        ) from error
    except (HTTPError, OSError) as error:
        raise UnreachableError(
            f"{repository} is not on this computer, and the hub ({endpoint()}) could not be "
            f"reached. {MEANWHILE}."
        ) from error


def check_hashes(folder: Path, name: str) -> None:
    """Raises ValueError, and removes the folder, if a file is not the one that arrived."""
    hashes = manifest(folder / MANIFEST, name).get("sha256")
    if not isinstance(hashes, dict):
        raise damaged(folder, MANIFEST, name)
    check_files(folder, hashes, name)


def _check_listing(repository: str, files: tuple[HubFile, ...], everything: list[str]) -> None:
    names = {file.name for file in files}
    if adapter := next((name for name in everything if name.startswith("adapter_model.")), None):
        raise ValueError(
            f"The hub has an adapter in {repository} ({adapter}), and adapters are not read: merge it into "
            "the weights of its model."
        )
    if "config.json" not in names:
        raise ValueError(
            f"{repository} has no config.json on the hub, so it is not a model of Hugging Face's "
            "library."
        )
    if not any(name.endswith(".safetensors") for name in names):
        pickled = any(name.endswith((".bin", ".pt", ".pth")) for name in everything)
        why = (
            "only as a pickle, which can run code when it is opened"
            if pickled
            else "in no readable form"
        )
        raise ValueError(
            f"The hub has the weights of {repository} {why}; this app reads only safetensors."
        )
    if not any(map(TOKENIZER.fullmatch, names)):
        raise ValueError(f"{repository} has no tokenizer on the hub.")
