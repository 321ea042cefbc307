"""A real Ray cluster on this machine: its actors give the same profile, whatever is killed meanwhile."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from model.system.cluster import HERE, TOKEN, joined, prepare

prepare(HERE)  # before Ray is imported

import ray  # noqa: E402
from ray._private.state import actors as known_actors  # noqa: E402

from model.profile import Profile, open_profile, profile  # noqa: E402
from model.profile.engines import actors  # noqa: E402
from model.profile.engines.actors import _Crew  # noqa: E402
from model.profile.slices import ATTEMPTS  # noqa: E402
from model.system.cluster_machine import Machine  # noqa: E402
from tests.folders import new_folder  # noqa: E402
from tests.model.profile.test_profile import assert_equal  # noqa: E402
from tests.model.profile.test_run import saved  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.ray,
    pytest.mark.xdist_group("ray"),  # one cluster for all of them
    pytest.mark.filterwarnings("ignore"),  # of Ray's own
]
LINES = [f"word {number}" for number in range(12)]
LINES[5] = "x"  # one token is no window
# Profiles in slices of one window, saves each, and waits after the second for ever.
DRIVER = """
import sys, time
from model.profile import profile, run, slices
slices.SLICE, run.SECONDS_BETWEEN_SAVES = 1, 0

def told(progress):
    if progress.windows == 2:
        print("two", flush=True)
        time.sleep(1e6)

model, corpus, to, cluster = sys.argv[1:]
profile(model, corpus, to, by_line=True, cluster=cluster, workers=1, told=told)
"""


@pytest.fixture(scope="module")
def cluster(ray_home: Path) -> Iterator[str]:
    """The address of a cluster with one processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(ray_home))
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        patch.setenv(
            "RAY_health_check_period_ms", "500"
        )  # a machine that is gone is missed at once
        for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS"):
            patch.delenv(name, raising=False)
        with joined(HERE, cpus=1):
            yield ray.get_runtime_context().gcs_address


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Profile]]:
    """Profiles a small model over a text in slices of one window."""
    place = tmp_path_factory.mktemp("run")
    corpus = place / "corpus.txt"
    corpus.write_text("\n".join(LINES))
    name = saved(place / "m", 0)

    def run(to: Path | None = None, **how: object) -> Profile:
        return profile(name, corpus, to, by_line=True, **how)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.profile.slices.SLICE", 1)
        yield run


@pytest.fixture(scope="module")
def whole(run: Callable[..., Profile]) -> Profile:
    """By this process, with one row that cannot be read."""
    found = run()
    assert [number for number, _ in found.about.skipped] == [5]
    assert found.sums.windows == len(LINES) - 1
    return found


def busy(crew: _Crew) -> list[ray.actor.ActorHandle]:
    """The actors that have slices."""
    return list(dict.fromkeys(task.actor for task in crew._tasks.values() if task.one))


def after_handing_out(
    patch: pytest.MonkeyPatch, *steps: Callable[[_Crew], object]
) -> list[Callable[[_Crew], object]]:
    """Calls each step after slices are handed out until it is done. Returns those to come."""
    left, hand_out = list(steps), _Crew._hand_out

    def then(crew: _Crew) -> None:
        hand_out(crew)
        if left and left[0](crew):
            del left[0]

    patch.setattr(_Crew, "_hand_out", then)
    return left


def test_an_actor_that_is_killed_loses_no_window_and_none_counts_twice(
    cluster: str, run: Callable[..., Profile], whole: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(crew: _Crew) -> bool:
        (actor,) = busy(crew)
        os.kill(known_actors(actor._actor_id.hex())["Pid"], signal.SIGKILL)
        return True

    left = after_handing_out(monkeypatch, busy, busy, kill)
    assert_equal(run(cluster="auto", workers=1), whole)
    assert left == []


def test_a_machine_that_comes_helps_and_one_that_goes_loses_nothing(
    cluster: str, run: Callable[..., Profile], whole: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(new_folder("ray"))
    machines: list[Machine] = []

    def add(crew: _Crew) -> bool:
        machines.append(Machine.start(folder, 1, cluster))
        loading = [ref for ref, task in crew._tasks.items() if task.one is None]
        return bool(ray.wait(loading)[0])

    def remove(crew: _Crew) -> bool:
        if len(busy(crew)) < 2:
            return False
        machines[0].kill_all_processes(check_alive=False, allow_graceful=False)
        return True

    left = after_handing_out(monkeypatch, busy, add, remove)
    assert_equal(run(cluster="auto", workers=2), whole)
    assert left == []


def test_where_the_command_is_killed_the_next_one_goes_on_from_what_it_saved(
    cluster: str, run: Callable[..., Profile], whole: Profile, tmp_path: Path
) -> None:
    model, corpus = whole.about.model, Path(whole.about.model).with_name("corpus.txt")
    command = [sys.executable, "-c", DRIVER, model, str(corpus), str(tmp_path), cluster]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as driver:
        assert driver.stdout.readline() == b"two\n"
        driver.kill()
    assert open_profile(tmp_path).sums.windows == 2
    resumed = []
    # There is one processor: this waits until the actor of the other one has ended.
    found = run(tmp_path, cluster="auto", workers=1, told=resumed.append)
    assert_equal(found, whole)
    assert len(resumed) == len(LINES) - 2


class _Idle:
    """What an actor does that has no model. Its methods are given with it: the workers have no tests."""

    def __init__(self, about: None) -> None:
        pass

    def load(self) -> None:
        pass

    def profile(self, one: SimpleNamespace) -> int:
        return int(one.first)


def crew_of(kind: type, patch: pytest.MonkeyPatch) -> _Crew:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    patch.setattr(actors, "Worker", kind)
    slices = (SimpleNamespace(first=number, end=number + 1) for number in range(6))
    return _Crew(slices, None, {"CPU": 1.0})  # type: ignore[arg-type]


def test_only_the_windows_that_end_their_process_are_blamed(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deadly(_Idle):
        def profile(self, one: SimpleNamespace) -> int:
            if one.first == 3:
                os._exit(1)
            return int(one.first)

    crew, found = crew_of(Deadly, monkeypatch), []
    with pytest.raises(
        ValueError, match=f"windows 3 to 3 have ended their process {ATTEMPTS} times"
    ):
        found += crew.profiles(1)
    crew.end()


def test_a_worker_without_the_model_says_so(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(_Idle):
        def load(self) -> None:
            raise ValueError("The weights have changed.")

    crew = crew_of(Other, monkeypatch)
    with pytest.raises(ValueError, match=r"^The weights have changed\.$"):
        next(crew.profiles(1))
    crew.end()


def test_what_no_machine_has_is_not_waited_for(cluster: str, run: Callable[..., Profile]) -> None:
    with pytest.raises(ValueError, match=r"No machine of the cluster has 1 CPU and 0\.5 GPU"):
        run(cluster="auto", gpus_per_worker=0.5)


def test_a_cluster_of_its_own_is_for_this_user_and_this_machine_alone(cluster: str) -> None:
    token = Path.home() / TOKEN
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert len(token.read_text()) == 64
    found = set(listening(os.getpid()))
    assert found <= LOOPBACK
    assert len(found) > 0


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def listening(pid: int) -> Iterator[str]:
    """The addresses, as Linux writes them, on which a process or one that it began listens."""
    lines = [
        line.split()
        for file in ("tcp", "tcp6")
        for line in Path("/proc/net", file).read_text().splitlines()[1:]
    ]
    addresses = {line[9]: line[1].split(":")[0] for line in lines if line[3] == "0A"}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from listening(int(child))
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                inode = os.readlink(file).removeprefix("socket:[").removesuffix("]")
                if inode in addresses:
                    yield addresses[inode]
