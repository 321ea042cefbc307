"""By worker processes of this machine, without a server."""

from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import chain
from multiprocessing import get_context

from model.profile.corpus_profile import Profile
from model.profile.slices import Slice, of_weights, refuse_what_kills, slice_profile
from model.profile.tables import ProfileScope
from model.profile.window import Profiled


def by_processes(
    slices: Iterator[Slice], about: ProfileScope, profiled: Profiled, *, workers: int
) -> Generator[Profile]:
    """The profiles of all slices, in the order in which they are ready. Where a worker dies, each slice that
    was under way is given alone to a new one: nothing is lost, nothing counts twice, and what kills its
    process is known.

    Args:
        profiled: is not read: each worker loads the model.
        workers: processes.
    """
    deaths: Counter[int] = Counter()  # of workers that had one slice alone, by its first window
    taken: dict[int, Slice] = {}  # those that are not ready yet, by their first window
    while True:
        under_way: dict[Future[Profile], Slice] = {}
        suspects = list(taken.values())
        with suppress(BrokenProcessPool), _pool(workers) as pool:
            for one in chain(
                suspects, slices
            ):  # a generator would close `slices` where a worker dies
                taken[one.first] = one
                under_way[pool.submit(_in_worker, one, about)] = one
                if one in suspects or len(under_way) >= 2 * workers:
                    yield from _ready(under_way, taken)
            while under_way:
                yield from _ready(under_way, taken)
            return
        if len(under_way) == 1:
            (alone,) = under_way.values()
            deaths[alone.first] += 1
            refuse_what_kills(alone, deaths[alone.first])


def _ready(under_way: "dict[Future[Profile], Slice]", taken: dict[int, Slice]) -> Iterator[Profile]:
    """Those that are ready, at least one."""
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        found = future.result()
        del taken[under_way.pop(future).first]
        yield found


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # A forked process would inherit torch's threads in whatever state they are.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # a stop does not wait for what has not begun


def _in_worker(slice_: Slice, about: ProfileScope) -> Profile:
    return slice_profile(slice_, about, of_weights(about.model, about.weights))
