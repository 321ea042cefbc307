"""How times are taken, with a clock of our own: nothing is measured in a test."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch

from model.analysis.cost import timing
from model.analysis.cost.timing import (
    FEWEST,
    REPEATS,
    head_ways,
    machine,
    measured,
    measured_heads,
    timed,
)
from tests.cases import cases


class Clock:
    """A clock that moves only when something runs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.runs: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    def way(self, name: str, seconds: float) -> Callable[[int], Callable[[], None]]:
        def of_length(length: int) -> Callable[[], None]:
            def run() -> None:
                self.runs.append((name, length))
                first = self.runs.count((name, length)) == 1
                self.now += 10 * seconds * length if first else seconds * length

            return run

        return of_length


def test_each_way_is_timed_at_each_length_without_its_first_run() -> None:
    clock = Clock()
    ways = (clock.way("fast", 0.001), clock.way("slow", 0.002))
    lengths, times = timed(ways, lengths=(1, 2, 4), seconds=99, clock=clock)
    assert lengths == (1, 2, 4)
    assert times[0] == pytest.approx((0.001, 0.002, 0.004))
    assert times[1] == pytest.approx((0.002, 0.004, 0.008))
    assert clock.runs.count(("fast", 2)) == REPEATS + 1


def test_slow_runs_are_repeated_less_and_no_length_is_begun_too_late() -> None:
    clock = Clock()
    lengths, _ = timed((clock.way("slow", 1.0),), lengths=(1, 2, 4), seconds=5, clock=clock)
    assert lengths == (1,)
    assert clock.runs == [("slow", 1)] * (FEWEST + 1)


def test_a_run_that_other_work_held_up_does_not_count() -> None:
    now, runs = 0.0, 0

    def run() -> None:
        nonlocal now, runs
        runs += 1
        now += 0.001 if runs % 5 == 0 else 0.016

    _, ((seconds,),) = timed((lambda length: run,), lengths=(8,), clock=lambda: now)
    assert seconds == pytest.approx(0.001)


def test_a_result_is_kept_until_it_is_asked_for_again() -> None:
    first = measured_heads(16, 2, 4, turn=nullcontext)
    assert measured_heads(16, 2, 4, turn=nullcontext) is first
    assert measured_heads(16, 2, 4, turn=nullcontext, again=1) is not first


def test_each_length_has_a_turn_of_its_own_and_waiting_for_it_is_no_measuring() -> None:
    clock, turns = Clock(), list[int]()

    @contextmanager
    def turn() -> Iterator[None]:
        clock.now += 100.0
        before = len(clock.runs)
        yield
        turns.append(len(clock.runs) - before)

    fast = clock.way("fast", 0.001)
    lengths, _ = timed((fast,), lengths=(1, 2), seconds=5, clock=clock, turn=turn)
    assert lengths == (1, 2)
    assert turns == [REPEATS + 1] * 2


def test_the_machine_is_named_after_its_processor(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text("processor : 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: another\n")
    assert machine(described).startswith("Some CPU @ 2 GHz, ")
    assert " cores" in machine(tmp_path / "missing")
    described.write_text("nothing of use")
    assert len(machine(described).split(", ")[0]) > 2


def test_sizes_that_cannot_be_measured_are_refused() -> None:
    with pytest.raises(ValueError, match="up to 2,048"):
        measured(4_096, 8, turn=nullcontext)
    with pytest.raises(ValueError, match="cannot be split"):
        measured(10, 3, turn=nullcontext)
    for sizes in ((4_096, 8, 4), (64, 8, 2_048), (2_048, 512, 1_024)):
        with pytest.raises(ValueError, match="are measured here"):
            measured_heads(*sizes, turn=nullcontext)


@cases("heads", [1, 2, 8])
def test_a_loop_over_heads_gives_what_one_shot_gives_and_what_pytorch_gives(heads) -> None:
    torch.manual_seed(0)
    one_shot, loop = (way() for way in head_ways(16, heads, 5))
    random = torch.Generator().manual_seed(0)
    x = torch.randn(5, 16, generator=random)
    w = torch.randn(4, 16, 16, generator=random) / 4
    torchs = torch.nn.MultiheadAttention(16, heads, bias=False, batch_first=True)
    with torch.no_grad():
        torchs.in_proj_weight.copy_(torch.cat([each.T for each in w[:3]]))
        torchs.out_proj.weight.copy_(w[3].T)
        expected = torchs(x[None], x[None], x[None])[0][0]
    torch.testing.assert_close(one_shot, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(loop, expected, atol=1e-5, rtol=1e-5)


def test_measuring_draws_nothing_from_the_generator_that_all_visitors_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another visitor's seeded run would get other numbers."""
    monkeypatch.setattr(timing, "ENOUGH", 0.0)
    before = torch.random.get_rng_state()
    measured(8, 2, turn=nullcontext, again=7)
    assert torch.equal(torch.random.get_rng_state(), before)
