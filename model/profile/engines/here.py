"""In this process."""

from collections.abc import Generator, Iterator

from model.profile.corpus_profile import Profile
from model.profile.slices import Slice, slice_profile
from model.profile.tables import ProfileScope
from model.profile.window import Profiled


def here(slices: Iterator[Slice], about: ProfileScope, profiled: Profiled) -> Generator[Profile]:
    """The profiles of all slices, one after another."""
    return (slice_profile(one, about, profiled) for one in slices)
