"""A slice of a corpus: what one worker takes at a time, and what it makes of it."""

import platform
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import torch

from model.analysis.attribution.patching import Turn
from model.loading.registry import load_model
from model.profile.corpus_profile import Profile
from model.profile.sums import Sums, UncountedError
from model.profile.tables import ProfileScope
from model.profile.window import Profiled, window_sums
from model.run.weights_hash import weights_hash
from model.system.deadline import own_time
from model.system.remote import asked
from model.system.threads import one_thread

if TYPE_CHECKING:
    from model.run.model import Model

SLICE = 32  # windows that one worker takes at a time; at most so many are lost when it dies
ATTEMPTS = 3  # workers that may die at one slice before the run ends


@dataclass(frozen=True)
class Slice:
    """Some windows of a corpus, one after another."""

    first: int
    texts: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.first + len(self.texts)


# Slices in, their profiles out: each once, in any order. A generator that is closed ends its workers. The
# model is for an engine that computes here; the workers of others load their own.
ProfileEngine = Callable[[Iterator[Slice], ProfileScope, Profiled], Generator[Profile]]


def slices_of(texts: Iterator[str], done: tuple[tuple[int, int], ...]) -> Iterator[Slice]:
    """The windows that are not done, in slices."""
    some = Slice(0, ())
    for number, text in enumerate(texts):
        if any(first <= number < end for first, end in done):
            continue
        if number != some.end or len(some.texts) == SLICE:
            if some.texts:
                yield some
            some = Slice(number, ())
        some = replace(some, texts=(*some.texts, text))
    if some.texts:
        yield some


# A sum over several threads depends on how many there are. With one, every worker computes the same bits; and
# as many workers as cores are faster than one pass that is spread over them.
@one_thread()
def slice_profile(slice_: Slice, about: ProfileScope, profiled: Profiled) -> Profile:
    """The profile of a few windows."""
    sums, skipped = Sums.none(profiled.heads, about.window), []
    for number, text in enumerate(slice_.texts, slice_.first):
        try:
            sums += window_sums(profiled, text, number, about.window)
        except UncountedError as refusal:
            skipped.append((number, str(refusal)))
    kept = {int(one) for one in sums.examples.rows["window"]}
    texts = {
        number: text for number, text in enumerate(slice_.texts, slice_.first) if number in kept
    }
    done = ((slice_.first, slice_.end),)
    found = replace(about, done=done, skipped=tuple(skipped), versions=versions())
    return Profile(found, sums, texts)


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """Of what computes here: the last bits of a sum depend on it."""
    found = [f"Python {platform.python_version()}", f"torch {torch.__version__}"]
    with suppress(PackageNotFoundError):
        found.append(f"transformers {version('transformers')}")
    return tuple(found)


@asked
def window_by_window(
    model: "Model", texts: Sequence[str], about: ProfileScope, *, turn: Turn
) -> Iterator[tuple[ProfileScope, Sums, Mapping[int, str], float]]:
    """What the profile of each window is made of, and the seconds that it took.

    Args:
        texts: of the windows; they are numbered from 0.
        about: what is profiled; it comes back with the window that was done.
        turn: makes a context in which one is computed.
    """
    profiled = Profiled.of(model)
    for number, text in enumerate(texts):
        with turn():
            began = own_time()
            made = slice_profile(Slice(number, (text,)), about, profiled)
            seconds = own_time() - began
        yield made.about, made.sums, made.texts, seconds


def refuse_what_kills(one: Slice, deaths: int) -> None:
    """Raises ValueError where the worker of a slice has died too often."""
    if deaths >= ATTEMPTS:
        raise ValueError(
            f"The windows {one.first} to {one.end - 1} have ended their process {ATTEMPTS} times. What was "
            "done before is kept."
        )


@lru_cache(maxsize=1)
def of_weights(name: str, weights: str) -> Profiled:
    """The model, loaded once a worker process. Raises ValueError where its weights are not those of this
    hash."""
    model = load_model(name)
    if weights_hash(model) != weights:
        raise ValueError(
            f"The weights of {name} have changed since the run began, or are others on another machine. What "
            "was done before is kept."
        )
    return Profiled.of(model)
