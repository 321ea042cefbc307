"""Parts of a profile add up to the whole bit for bit, whatever ends a run, and no folder is overwritten."""

import errno
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from model import load_model
from model.profile import Profile, open_profile, profile
from model.profile.run import RunProgress
from model.profile.sums import Sums
from tests.cases import cases
from tests.model.profile.sentences import SENTENCES, WINDOW, traces
from tests.model.profile.test_run import in_this_process, saved

TEXT = "Nobody knew the house. Nobody knew the man who lived in the house. " * 12


@pytest.mark.slow
def test_parts_add_up_to_the_whole_bit_for_bit_and_so_does_what_was_stopped(
    whole: Profile, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.profile.slices.SLICE", len(SENTENCES) // 6)

    def stop(progress: RunProgress) -> None:
        if progress.windows >= len(SENTENCES) // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, told=stop)
    assert open_profile(tmp_path).about.done == ((0, len(SENTENCES) // 3),)
    counted: list[RunProgress] = []
    resumed = profile(
        "house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, told=counted.append
    )
    assert len(counted) == 4  # slices that were left
    assert_equal(resumed, whole)
    assert_equal(open_profile(tmp_path), whole)


def assert_equal(one: Profile, other: Profile) -> None:
    assert one.about == other.about
    assert one.labels.equals(other.labels)
    assert one.texts == other.texts
    assert np.array_equal(one.sums.examples.rows, other.sums.examples.rows)
    for name, numbers in one.sums.numbers.items():
        assert np.array_equal(numbers, other.sums.numbers[name]), name


@pytest.mark.process
def test_a_worker_that_is_killed_loses_no_window_and_none_counts_twice(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.profile.slices.SLICE", 1)
    killed: list[int] = []

    def kill(progress: RunProgress) -> None:
        for worker in [] if killed else multiprocessing.active_children():
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)
            monkeypatch.setattr(
                "model.profile.engines.processes._pool", in_this_process
            )  # one start is enough

    name = saved(tmp_path / "m", 0)
    found = profile(name, corpus, by_line=True, most_windows=4, workers=1, told=kill)
    assert len(killed) == 1
    assert_equal(found, profile(name, corpus, by_line=True, most_windows=4))


@pytest.mark.slow
def test_a_full_disk_leaves_the_profile_that_was_there(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.profile.slices.SLICE", len(SENTENCES) // 6)
    before = profile(
        "house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, most_windows=len(SENTENCES) // 3
    )
    write_table = pq.write_table

    def full(table: pa.Table, file: Path, **how: Any) -> None:
        if "layer" in table.column_names:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_table(table, file, **how)

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="No space left"):
        profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW)
    assert_equal(open_profile(tmp_path), before)
    monkeypatch.undo()
    profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW)
    assert len(list(tmp_path.iterdir())) == 4  # nothing of the old one is left


def test_a_profile_says_what_computed_it_on_all_machines(whole: Profile) -> None:
    here = f"torch {torch.__version__}"
    assert here in whole.about.versions
    about = replace(whole.about.subject, versions=("torch 1.0",))
    elsewhere = Profile(about, Sums.none(whole.sums.heads, WINDOW), {})
    assert {here, "torch 1.0"} <= {*(whole + elsewhere).about.versions}


def test_windows_are_counted_once(corpus: Path) -> None:
    part = profile("house-gpt", corpus, by_line=True, window=WINDOW, most_windows=2)
    with pytest.raises(ValueError, match="twice"):
        part + part


@cases("head", [("decoder.1.self", 7), ("decoder.0.self", 2)])
def test_a_percentile_holds_the_share_of_smaller_numbers(head, whole: Profile) -> None:
    weights = [trace.find(head[0]).weights(head[1]) for trace in traces("house-gpt")]
    every = np.concatenate([one[np.tri(len(one), dtype=bool)] for one in weights])
    rows = np.concatenate([torch.special.entr(torch.tensor(one)).sum(-1) for one in weights])
    for numbers, percentile, shown in (
        (every, whole.percentile, (0.0, 0.001, 0.05, 0.4)),
        (rows, whole.entropy_percentile, (0.0, 0.02, 0.31, 1.23, 1e9)),
    ):
        for number in shown:
            least, most = percentile(head, number)
            assert least <= (numbers < number).mean() <= most
        assert percentile(head, 0.0) == (0, 0)  # nothing is smaller, whatever shares its bin
    least, most = whole.percentile(head, 1.0)
    assert least == most  # nor in the bin that 1 begins


def test_a_long_text_is_cut_into_windows_that_hold_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text(TEXT)
    found = profile("house-gpt", file, window=WINDOW)
    model = load_model("house-gpt")
    assert found.about.skipped == ()
    assert found.sums.tokens == pytest.approx(len(model.tokens(TEXT.strip())), rel=0.1)
    for text in found.texts.values():
        assert len(model.tokens(text)) <= WINDOW
        assert text in TEXT


def test_a_folder_with_another_profile_is_left_as_it_is(corpus: Path, tmp_path: Path) -> None:
    profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, most_windows=1)
    with pytest.raises(ValueError, match="another profile"):
        profile("house-gpt", corpus, tmp_path, by_line=True, window=8)


def test_a_damaged_profile_is_refused_with_a_sentence(corpus: Path, tmp_path: Path) -> None:
    profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, most_windows=1)
    (examples,) = tmp_path.glob("examples-*.parquet")
    examples.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        open_profile(tmp_path)
    with pytest.raises(ValueError, match="no profile"):
        open_profile(tmp_path / "elsewhere")
