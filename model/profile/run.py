"""Runs a model over a corpus; stops, and goes on later."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from model.loading.registry import load_model
from model.profile.battery import labels
from model.profile.corpus import Corpus
from model.profile.corpus_profile import Profile, open_profile
from model.profile.engines.here import here
from model.profile.engines.processes import by_processes
from model.profile.slices import ProfileEngine, slices_of
from model.profile.sums import Sums
from model.profile.tables import HEADS, ProfileScope
from model.profile.window import SHORTEST, Profiled
from model.run.model import Model
from model.run.weights_hash import weights_hash
from model.system.border import at_border
from model.system.cluster import prepare

SECONDS_BETWEEN_SAVES = 60.0
WINDOW = 256  # tokens, unless the model reads fewer

Told = Callable[["RunProgress"], object]


@dataclass(frozen=True)
class RunProgress:
    """How far a run is."""

    windows: int
    tokens: int
    seconds: float  # of this run
    share: float  # 0 to 1: about how much of what was asked for is done
    seconds_left: float  # at the pace of this run


@at_border
def profile(
    model: str | Model,
    corpus: str | Path,
    to: str | Path | None = None,
    *,
    window: int = WINDOW,
    by_line: bool = False,
    workers: int = 0,
    cluster: str | None = None,
    gpus_per_worker: float | None = None,
    most_windows: int | None = None,
    told: Told = lambda progress: None,
) -> Profile:
    """The profile of every head of a model over a text file.

    Args:
        model: a name, a hub id or a folder, as `load_model` takes them; or a loaded model, which runs in this
            process alone.
        to: the folder for the profile; what it holds already of this run is not computed again. None: it is
            not saved.
        window: most tokens of one pass.
        by_line: each line is a text of its own.
        workers: processes of one thread each; 0: this one. With a cluster its actors; 0: as many as there is
            room for.
        cluster: of Ray: an address, "auto" for the one that runs on this machine, "local" for one of its own.
        gpus_per_worker: a share of one, or several; None: one where the cluster has any.
        most_windows: where to end; None: at the end of the file.
        told: hears how far it is, and may raise to stop: what was done is then kept.

    Raises ValueError for a model, a file or a folder that it cannot use.

    >>> from model.profile import profile
    >>> letters = profile("induction", "letters.txt", "letters")
    >>> letters.sums.tokens, letters.windows_done
    (48, 1)
    """
    name = model if isinstance(model, str) else model.address
    if not isinstance(model, str) and (workers or cluster):
        raise ValueError(
            "Workers load the model themselves: give its name, its hub id or its folder."
        )
    _check(window, workers, most_windows)
    engine = _engine(workers, cluster, gpus_per_worker)
    loaded = load_model(model) if isinstance(model, str) else model
    opened, source = Profiled.of(loaded), Corpus(Path(corpus), by_line)
    window = min(window, opened.model.config.n_ctx)
    about = ProfileScope(
        name, weights_hash(opened.model), source.hash(), source.path.name, by_line, window
    )
    read = _Read(source, most_windows)
    run = _Run(_so_far(about, opened, to), None if to is None else Path(to), read, told)
    texts = read.noted(islice(source.windows(opened.model, window), most_windows))
    parts = engine(slices_of(texts, run.profile.about.done), about, opened)
    with closing(parts), run:  # what was done is saved before workers are waited for
        for done in parts:
            run.add(done)
    return run.profile


def _check(window: int, workers: int, most_windows: int | None) -> None:
    if window < SHORTEST:
        raise ValueError(f"A window has at least {SHORTEST} tokens, not {window}.")
    if workers < 0 or (most_windows or 0) < 0:
        raise ValueError("There are no fewer workers, or windows, than none.")


def _engine(workers: int, cluster: str | None, gpus: float | None) -> ProfileEngine:
    if cluster is not None:
        prepare(cluster)
        from model.profile.engines.actors import by_actors  # imports Ray

        return partial(by_actors, cluster=cluster, workers=workers, gpus=gpus)
    return partial(by_processes, workers=workers) if workers else here


def _so_far(about: ProfileScope, profiled: Profiled, to: str | Path | None) -> Profile:
    """What the folder holds of this run, or nothing but the labels of the heads."""
    if to is None or not (Path(to) / HEADS).exists():
        return Profile(about, Sums.none(profiled.heads, about.window), {}, labels(profiled.model))
    found = open_profile(to)
    if found.about.subject != about:
        raise ValueError(
            f"{Path(to).name} holds another profile: of {found.about.model} over "
            f"{found.about.corpus_name}, in windows of {found.about.window} tokens. Choose another folder."
        )
    return found


class _Read:
    """How much of the corpus has been read: its windows are about as long as those that are still to come."""

    def __init__(self, source: Corpus, most_windows: int | None) -> None:
        self._size, self._most = source.path.stat().st_size, most_windows
        self._windows = self._bytes = 0

    def noted(self, texts: Iterator[str]) -> Iterator[str]:
        """The same texts."""
        for text in texts:
            self._windows += 1
            self._bytes += len(text.encode()) + 1  # and the space or line break after it
            yield text
        self._size = self._bytes  # now that is known

    def share(self, done: int) -> float:
        """0 to 1: of what was asked for, where so many windows are done."""
        whole = self._size * self._windows / max(1, self._bytes)
        return min(1.0, done / max(1.0, min(whole, self._most or whole)))


class _Run:
    """Adds up the slices. Saves the sum from time to time and at the end of the run, also after an error."""

    def __init__(self, so_far: Profile, to: Path | None, read: _Read, told: Told) -> None:
        self.profile, self._to, self._read, self._told = so_far, to, read, told
        self._began = self._saved = time.monotonic()
        self._before = so_far.windows_done

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._save()

    def add(self, done: Profile) -> None:
        self.profile = self.profile + done
        now = time.monotonic()
        if now - self._saved >= SECONDS_BETWEEN_SAVES:
            self._save()
            self._saved = now
        self._told(self._progress(now - self._began))

    def _progress(self, seconds: float) -> RunProgress:
        sums, done = self.profile.sums, self.profile.windows_done
        share = self._read.share(done)
        left = (1 - share) / share * done / max(1, done - self._before) * seconds if share else 0.0
        return RunProgress(sums.windows, sums.tokens, seconds, share, left)

    def _save(self) -> None:
        if self._to is not None:
            self.profile.save(self._to)
