"""No case of a test is left out unseen."""

import os

import pytest

from tests.cases import cases


def test_a_skip_within_a_test_is_a_failure(request: pytest.FixtureRequest) -> None:
    call = pytest.CallInfo.from_call(lambda: pytest.skip("not here"), "call")
    report = request.node.ihook.pytest_runtest_makereport(item=request.node, call=call)
    assert report.outcome == "failed"
    assert "not here" in report.longrepr


def test_each_case_is_called_with_patches_and_a_folder_of_its_own(request) -> None:
    seen = []

    @cases("number, word", [(1, "a"), (2, "b")])
    def noted(number, word, tmp_path, monkeypatch) -> None:
        seen.append((number, word, [*tmp_path.iterdir()], os.environ.get("CASE")))
        monkeypatch.setenv("CASE", word)
        (tmp_path / word).touch()

    given = {
        name: request.getfixturevalue(name) for name in ("subtests", "tmp_path", "monkeypatch")
    }
    noted(**given)
    assert seen == [(1, "a", [], None), (2, "b", [], None)]
