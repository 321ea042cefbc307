"""The list of planted bugs fits this tree: `python -m tools.planted_bugs` can plant each of them."""

from pathlib import Path

from tools.planted_bugs import planted_bugs

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("nn", "arithmetic", "trace", "download", "hub", "analysis", "profile", "serving", "training",
         "worked", "notation", "state", "views", "figures", "explorer", "server")  # fmt: skip


def test_each_bug_can_be_planted_and_its_tests_are_there() -> None:
    bugs = planted_bugs()
    for bug in bugs:
        source = (REPOSITORY / bug.file).read_text(encoding="utf-8")
        assert bug.planted(source) != source, bug.name
        assert all((REPOSITORY / test).is_file() for test in bug.tests), bug.name
        assert bug.tests, bug.name
    assert len(bugs) >= 40
    assert {Path(bug.file).parts[1] for bug in bugs} >= set(ROOMS)
