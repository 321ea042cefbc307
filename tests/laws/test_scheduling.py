"""A file is tested by one process, and the files of a group by the same one."""

import pytest

from tests.scheduling import ByFile


def test_files_with_a_cluster_share_a_process_and_pages_share_none(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    scope = ByFile(pytestconfig)._split_scope
    ray = ("tests/model/profile/test_actors.py", "tests/model/serving/cluster/test_faults.py")
    assert {scope(f"{file}::test_{number}") for file in ray for number in range(2)} == {"ray"}
    file = "tests/model/nn/test_attend.py"
    assert scope(f"{file}::test_a[one::two]") == scope(f"{file}::test_b") == file
    page = "tests/pages/test_tour.py::test_a"
    assert scope(page) == page
