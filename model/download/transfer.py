"""The files of a model on their way from the hub to this computer.

A transfer that ends early goes on where it stopped. What has arrived is hashed before it is used.
"""

import hashlib
import json
import shutil
import threading
import time
from pathlib import Path

from model.download.hub import (
    MANIFEST,
    MEANWHILE,
    SECONDS,
    HubFile,
    Listing,
    bytes_text,
    endpoint,
    is_whole,
)
from model.download.wheel import Progress, cache_folder
from model.system.files import file_hash
from model.system.model_folders import NotStoredError, alone

RETRIES, SECONDS_BETWEEN = 5, 1.0  # where a connection dies and no new byte comes
PIECE = 2**18  # bytes between two looks at progress and at Stop
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
                _fetch_all(listing, folder, progress, cancelled)
            except OSError as error:
                raise NotStoredError(listing.repository, error) from error
    return folder


def _fetch_all(
    listing: Listing, folder: Path, progress: Progress, cancelled: threading.Event | None
) -> None:
    waiting = _waiting_room(listing)
    waiting.mkdir(parents=True, exist_ok=True)
    missing = listing.size - sum(_arrived(waiting, file) for file in listing.files)
    free = shutil.disk_usage(waiting).free
    if missing > free:
        raise ValueError(
            f"{listing.repository} needs {bytes_text(missing)} and the disk has "
            f"{bytes_text(free)} left. {MEANWHILE}."
        )
    done = 0
    for file in listing.files:
        _fetch_file(listing, file, waiting, _Meter(listing, done, progress, cancelled))
        done += file.size
    described = {
        "repository": listing.repository,
        "revision": listing.revision,
        "sha256": {file.name: file_hash(waiting / file.name) for file in listing.files},
    }
    (waiting / MANIFEST).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    waiting.rename(folder)


def arrived(listing: Listing) -> int:
    """Bytes of an unfinished download that are here."""
    return sum(_arrived(_waiting_room(listing), file) for file in listing.files)


class _Meter:
    """Bytes that have arrived, told as they come; ends the transfer when it is cancelled."""

    def __init__(
        self, listing: Listing, done: int, progress: Progress, cancelled: threading.Event | None
    ) -> None:
        self._listing, self._done = listing, done
        self._progress, self._cancelled = progress, cancelled

    def at(self, size: int) -> None:
        """So many bytes of the current file are here. Ends the transfer when that was asked."""
        listing, here = self._listing, self._done + size
        so_far = f"{bytes_text(here)} of {bytes_text(listing.size)}"
        if self._cancelled is not None and self._cancelled.is_set():
            raise CancelledError(
                f"The download of {listing.repository} was stopped at {so_far}. Started again, it "
                "goes on from there."
            )
        share = min(here / max(listing.size, 1), 1.0)
        self._progress(f"Downloading {listing.repository}: {so_far}", share)


def _fetch_file(listing: Listing, file: HubFile, waiting: Path, meter: _Meter) -> None:
    whole, part = waiting / file.name, waiting / f"{file.name}.part"
    meter.at(_arrived(waiting, file))
    if whole.is_file():
        return
    from huggingface_hub.errors import HTTPError

    try:
        _transfer(listing, file, part, meter)
    except (HTTPError, ConnectionError, TimeoutError) as error:  # any other OSError is the disk's
        here = arrived(listing)
        raise ValueError(
            f"The download of {listing.repository} broke off: {bytes_text(here)} of "
            f"{bytes_text(listing.size)} are here. Started again, it goes on from there. "
            f"{MEANWHILE}."
        ) from error
    if not _is_listed(part, file):
        part.unlink()
        raise ValueError(
            f"The file {file.name} of {listing.repository} arrived with another hash than the hub "
            "lists, so it was thrown away. Try again; if it stays so, do not trust the source."
        )
    part.rename(whole)


def _transfer(listing: Listing, file: HubFile, part: Path, meter: _Meter) -> None:
    """Fetches what is missing of a file, from the byte where it stopped; goes on at once where the
    connection dies, as long as new bytes come."""
    from huggingface_hub.errors import HTTPError

    part.touch()
    failures = 0
    while part.stat().st_size < file.size:
        before = part.stat().st_size
        try:
            _receive(listing, file, part, meter)
        except HTTPError as error:
            failures = 0 if part.stat().st_size > before else failures + 1
            if failures > RETRIES or getattr(error, "response", None) is not None:
                raise
            time.sleep(SECONDS_BETWEEN)


def _receive(listing: Listing, file: HubFile, part: Path, meter: _Meter) -> None:
    """Appends to a file what one answer of the hub brings."""
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    url = hf_hub_url(listing.repository, file.name, revision=listing.revision, endpoint=endpoint())
    here = part.stat().st_size
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    if here:
        headers["Range"] = f"bytes={here}-"
    session = get_session()
    with (
        session.stream(
            "GET", url, headers=headers, timeout=SECONDS, follow_redirects=True
        ) as answer,
        part.open("r+b") as opened,
    ):
        hf_raise_for_status(answer)
        here = here if answer.status_code == PARTIAL else 0  # else the whole file comes anew
        opened.seek(here)
        opened.truncate()
        for piece in answer.iter_bytes(PIECE):
            meter.at(here)
            opened.write(piece)
            here += len(piece)
    meter.at(here)


def _is_listed(path: Path, file: HubFile) -> bool:
    """Whether a file is the one that the hub lists: SHA-256 of large ones, git's SHA-1 of small."""
    if path.stat().st_size != file.size:
        return False
    if file.sha256 is not None:
        return file_hash(path) == file.sha256
    if file.blob is None:
        return True
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == file.blob


def _arrived(waiting: Path, file: HubFile) -> int:
    for path in (waiting / file.name, waiting / f"{file.name}.part"):
        if path.is_file():
            return min(path.stat().st_size, file.size)
    return 0


def _waiting_room(listing: Listing) -> Path:
    """Where files lie until all have arrived: one place for each revision."""
    name = f".arriving-{listing.repository.replace('/', '--')}-{listing.revision[:12]}"
    return cache_folder(name)
