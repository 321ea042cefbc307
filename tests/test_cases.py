"""Cases in a loop fail as items of their own would."""

import os
from pathlib import Path

import pytest

from tests.cases import each


def test_a_case_that_fails_fails_the_test_and_is_named() -> None:
    tried = list[int]()

    @each("number", [1, 2, 3])
    def halves(number: int) -> None:
        tried.append(number)
        assert number != 2

    with pytest.raises(AssertionError) as failure:
        halves()
    assert (tried, failure.value.__notes__) == ([1, 2], ["where {'number': 2}"])


def test_a_skipped_case_hides_no_other() -> None:
    @each("number", [1, 2])
    def skipped(number: int) -> None:
        pytest.skip("not here")

    with pytest.raises(AssertionError, match="all after it"):
        skipped()


def test_what_a_case_leaves_is_gone_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @each("name", ["one", "other"])
    def alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert list(tmp_path.iterdir()) == []
        assert "CASE" not in os.environ
        (tmp_path / name).touch()
        monkeypatch.setenv("CASE", name)

    alone(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert "CASE" not in os.environ


@each("second", "ab")
@each(("first", "square"), [(2, 4), (3, 9)])
def test_cases_multiply_and_fixtures_come_along(
    first: int, square: int, second: str, record_property: object
) -> None:
    assert first**2 == square
    assert second in "ab"
    assert callable(record_property)
