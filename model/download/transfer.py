"""The files of a model on their way from the hub to this computer.

The hub's own library can fetch a whole model, but it deletes what has arrived when a transfer breaks off,
it can be stopped only after each 10 MB, and it does not hash what comes by HTTP. So its addresses, session
and errors are used here, and the bytes are received by ourselves. A transfer goes on where it stopped, it
ends when that is asked, and each file is hashed before it is used.
"""

import json
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from model.download.hub import (
    MANIFEST,
    MEANWHILE,
    SECONDS,
    HubFile,
    Listing,
    endpoint,
    is_whole,
)
from model.download.wheel import Progress, cache_folder
from model.system.files import bytes_text, file_hash
from model.system.model_folders import NotStoredError, alone

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
