"""The command, as somebody types it."""

import errno
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from model.profile import open_profile, slices
from model.profile.__main__ import main
from model.profile.run import RunProgress
from tests.model.profile.test_run import saved
from viz.state.navigation import entry

LINES = [f"ab {number}" for number in range(8)]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What stands after the command's name, for a small model and a text of eight lines."""
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    monkeypatch.setattr(slices, "SLICE", 1)
    return [
        saved(tmp_path / "m", 0),
        str(tmp_path / "lines.txt"),
        "-o",
        str(tmp_path / "made"),
        "--lines",
    ]


def ran(typed: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["profile", *typed])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_it_tells_how_far_it_is_and_where_to_look_at_what_it_made(
    typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(typed, monkeypatch) == 0
    told = capsys.readouterr()
    assert told.out == ""  # messages are no output
    said = told.err
    shares = [line.split("about ")[1].split("%")[0] for line in said.split("\r")[:-1]]
    assert [int(share) for share in shares] == pytest.approx(
        [100 * n / 8 for n in range(1, 9)], abs=0.6
    )
    assert "0:00:00 left" in said.split("\r")[-2]
    assert "8 windows, " in said
    assert f"“{entry('pages/all_heads.py').title}”" in said


def test_a_run_that_was_stopped_goes_on_and_counts_only_what_is_left(
    typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[RunProgress] = []

    def stop(progress: RunProgress) -> None:
        heard.append(progress)
        if len(heard) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("model.profile.__main__._tell", stop)
        assert ran(typed, patch) == 130
        assert typed[3] in capsys.readouterr().err
        assert heard[-1].share == pytest.approx(0.5, abs=0.01)
        # Four windows of eight were done in this run: the others take as long.
        assert heard[-1].seconds_left == pytest.approx(heard[-1].seconds, rel=0.05)
        assert open_profile(typed[3]).sums.windows == 4
        assert ran(typed, patch) == 0
    assert [one.windows for one in heard[4:]] == [5, 6, 7, 8]
    # Five are done, one of them in this run: three more take three times as long.
    assert heard[4].seconds_left == pytest.approx(3 * heard[4].seconds, rel=0.05)


def test_what_cannot_be_done_is_said_in_a_sentence(
    typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, text, *where = typed
    for wrong, why in (
        (["no such model", text, *where], "no such model"),
        ([model, text + "x", *where], f"no file {Path(text).name}x"),
        ([model, text, *where, "--cluster", "127.0.0.1:1"], "No cluster answers at 127.0.0.1:1"),
        ([model, text, *where, "--window", "1"], "at least 2 tokens, not 1"),
        ([model, text, *where, "--workers=-1"], "no fewer workers"),
    ):
        assert ran(wrong, monkeypatch) == 2
        assert why in capsys.readouterr().err
    assert not Path(where[1]).exists()


def test_a_full_disk_is_said_in_a_sentence(
    typed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(pq, "write_table", full)
    assert ran(typed, monkeypatch) == 2
    said = capsys.readouterr().err
    assert f"{os.strerror(errno.ENOSPC)}: {typed[3]}." in said
