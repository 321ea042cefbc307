"""No case of a test is left out unseen."""

import pytest


def test_a_skip_within_a_test_is_a_failure(request: pytest.FixtureRequest) -> None:
    call = pytest.CallInfo.from_call(lambda: pytest.skip("not here"), "call")
    report = request.node.ihook.pytest_runtest_makereport(item=request.node, call=call)
    assert report.outcome == "failed"
    assert "not here" in report.longrepr
