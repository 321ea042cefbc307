"""The list of planted bugs fits this tree: `python -m tools.planted_bugs` can plant each of them."""

from pathlib import Path

from tools.planted_bugs import planted_bugs

REPOSITORY = Path(__file__).resolve().parents[2]
BESIDE = {("pages",), ("deploy",), ("model", "serving", "cluster")}  # that have bugs too


def rooms() -> set[tuple[str, ...]]:
    """The folders of the model and of what is seen that hold code; weights are none."""
    files = [file for house in ("model", "viz") for file in (REPOSITORY / house).glob("*/*.py")]
    return {file.parent.relative_to(REPOSITORY).parts for file in files}


def test_each_bug_can_be_planted_and_its_tests_are_there() -> None:
    bugs = planted_bugs()
    for bug in bugs:
        source = (REPOSITORY / bug.file).read_text(encoding="utf-8")
        assert bug.planted(source) != source, bug.name
        assert all((REPOSITORY / test).is_file() for test in bug.tests), bug.name
        assert bug.tests, bug.name
    assert len(bugs) >= 75
    assert sum(not bug.fast_tests for bug in bugs) <= 5  # that only a browser sees


def test_every_room_has_a_bug() -> None:
    folders = [Path(bug.file).parent.parts for bug in planted_bugs()]
    without = {
        "/".join(room)
        for room in rooms() | BESIDE
        if not any(folder[: len(room)] == room for folder in folders)
    }
    assert not without
    assert len(rooms()) > 30
