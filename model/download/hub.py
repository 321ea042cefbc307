"""Models on the Hugging Face hub: what the hub lists of one, with sizes and hashes, what of it is here, and
its files on their way.

Only configs, tokenizers and safetensors count.
"""

import json
import re
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.download.hub_folder import TOKENIZER, WANTED, weight_files
from model.download.wheel import Progress, cache_folder
from model.system.files import bytes_text, file_hash
from model.system.model_folders import NotStoredError, alone, check_files, damaged, manifest
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


# The files of a model on their way from the hub to this computer.
# The hub's own library can fetch a whole model, but it deletes what has arrived when a transfer breaks off,
# it can be stopped only after each 10 MB, and it does not hash what comes by HTTP. So its addresses, session
# and errors are used here, and the bytes are received by ourselves. A transfer goes on where it stopped, it
# ends when that is asked, and each file is hashed before it is used.

RETRIES, SECONDS_BETWEEN = 5, 1.0  # where a connection dies and no new byte comes
PIECE = 2**18  # bytes after which progress is told and Stop is heard
PARTIAL = 206  # the status of an answer that begins where it was asked to


class CancelledError(ValueError):
    """The download was stopped by the visitor; what has arrived is kept."""


def fetch(
    listing: Listing,
    folder: Path,
    progress: Progress,
    cancelled: threading.Event | None = None,
) -> Path:
    """Fetches a model's files into a folder, which appears when all of them are whole. What has
    arrived before is not fetched again.

    Args:
        listing: the files, with sizes and hashes.
        progress: is told what is being done, and the share done, 0 to 1, if known.
        cancelled: is looked at on the way; None: nobody can cancel.

    Raises ValueError, with a sentence, when a file cannot be had or is not the one that the hub
    listed, and `CancelledError` when `cancelled` was set.
    """
    with alone(folder, listing.repository, progress):
        if not is_whole(folder):  # else another one has brought it meanwhile
            try:
                _Transfer(listing, progress, cancelled or threading.Event()).run(folder)
            except OSError as error:
                raise NotStoredError(listing.repository, error) from error
    return folder


def arrived(listing: Listing) -> int:
    """Bytes of an unfinished download that are here."""
    return sum(_arrived(_waiting_room(listing), file) for file in listing.files)


@dataclass(frozen=True)
class _Transfer:
    """One model on its way."""

    listing: Listing
    progress: Progress
    cancelled: threading.Event

    def run(self, folder: Path) -> None:
        listing, waiting = self.listing, _waiting_room(self.listing)
        waiting.mkdir(parents=True, exist_ok=True)
        missing, free = listing.size - arrived(listing), shutil.disk_usage(waiting).free
        if missing > free:
            raise ValueError(
                f"{listing.repository} needs {bytes_text(missing)} and the disk has "
                f"{bytes_text(free)} left. {MEANWHILE}."
            )
        for file in listing.files:
            self._tell()
            if not (waiting / file.name).is_file():
                self._fetch(file, waiting / f"{file.name}.part")
        self._tell()
        described = {
            "repository": listing.repository,
            "revision": listing.revision,
            "sha256": {file.name: file_hash(waiting / file.name) for file in listing.files},
        }
        (waiting / MANIFEST).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        waiting.rename(folder)

    def _tell(self) -> None:
        """Says how much has arrived. Raises CancelledError where the transfer is to end."""
        name, here, size = self.listing.repository, arrived(self.listing), self.listing.size
        so_far = f"{bytes_text(here)} of {bytes_text(size)}"
        if self.cancelled.is_set():
            raise CancelledError(
                f"The download of {name} was stopped at {so_far}. Next time it resumes from there."
            )
        self.progress(f"Downloading {name}: {so_far}", here / max(size, 1))

    def _fetch(self, file: HubFile, part: Path) -> None:
        """One file, as the hub lists it. Where the connection dies it goes on, as long as new bytes come."""
        from huggingface_hub.errors import HTTPError

        name, failures = self.listing.repository, 0
        part.touch()
        try:
            while (before := part.stat().st_size) < file.size:
                try:
                    self._receive(file, part)
                except HTTPError as error:
                    failures = 0 if part.stat().st_size > before else failures + 1
                    if failures > RETRIES or getattr(error, "response", None) is not None:
                        raise
                    time.sleep(SECONDS_BETWEEN)
        except (HTTPError, ConnectionError, TimeoutError) as error:  # others are the disk's
            raise ValueError(
                f"The download of {name} was interrupted: {bytes_text(arrived(self.listing))} of "
                f"{bytes_text(self.listing.size)} have arrived. Next time it resumes from there. "
                f"{MEANWHILE}."
            ) from error
        if not _is_listed(part, file):
            part.unlink()
            raise ValueError(
                f"The file {file.name} of {name} does not have the hash that the hub lists, so it "
                "was deleted. Try again; if this happens again, do not trust the source."
            )
        part.rename(part.with_suffix(""))

    def _receive(self, file: HubFile, part: Path) -> None:
        """Appends to a file what one answer of the hub brings."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        url = hf_hub_url(
            self.listing.repository, file.name, revision=self.listing.revision, endpoint=endpoint()
        )
        here = part.stat().st_size
        headers = build_hf_headers() | {"Accept-Encoding": "identity"}
        if here:
            headers["Range"] = f"bytes={here}-"
        with (
            get_session().stream(
                "GET", url, headers=headers, timeout=SECONDS, follow_redirects=True
            ) as answer,
            part.open("r+b") as opened,
        ):
            hf_raise_for_status(answer)
            opened.seek(here if answer.status_code == PARTIAL else 0)  # else the whole file comes
            opened.truncate()
            for piece in answer.iter_bytes(PIECE):
                opened.write(piece)
                opened.flush()
                self._tell()


def _is_listed(path: Path, file: HubFile) -> bool:
    """Whether a file is the one that the hub lists: SHA-256 of large ones, git's SHA-1 of small."""
    from huggingface_hub.utils.sha import git_hash

    if path.stat().st_size != file.size:
        return False
    if file.sha256 is not None:
        return file_hash(path) == file.sha256
    if file.blob is None:
        return True
    return git_hash(path.read_bytes()) == file.blob


def _arrived(waiting: Path, file: HubFile) -> int:
    for path in (waiting / file.name, waiting / f"{file.name}.part"):
        if path.is_file():
            return min(path.stat().st_size, file.size)
    return 0


def _waiting_room(listing: Listing) -> Path:
    """Where files lie until all have arrived: one place for each revision."""
    name = f".arriving-{listing.repository.replace('/', '--')}-{listing.revision[:12]}"
    return cache_folder(name)
