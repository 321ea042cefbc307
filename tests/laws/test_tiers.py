"""What `make test` leaves out is what needs more than a process and a browser, and a change asks for it."""

import tomllib
from pathlib import Path

import pytest
import yaml

from tools.tiers import FAST, FOLDERS, SHARED, markers

ROOT = Path(__file__).resolve().parents[2]


def test_each_marker_that_make_test_leaves_out_is_declared_and_has_its_folders() -> None:
    assert f"\nFAST := {FAST}\n" in (ROOT / "Makefile").read_text()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    declared = {line.partition(":")[0] for line in settings["markers"]}
    assert set(FOLDERS) <= declared
    assert [
        path
        for paths in (*FOLDERS.values(), SHARED)
        for path in paths
        if not (ROOT / path).exists()
    ] == []


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        (["README.md"], []),
        (["model/serving/cluster/actors.py"], ["ray", "slow"]),
        (["viz/site/js/main.js"], ["firefox", "walk", "slow"]),
        (["viz/siteless.py"], ["walk", "slow"]),
        (["tests/viz/site/test_site.py"], ["firefox", "walk", "slow"]),
        (["tests/deploy/test_wheel.py"], ["ray", "wheel"]),
        (["tests/conftest.py"], list(FOLDERS)),
    ],
    ids=str,
)
def test_a_change_asks_for_the_markers_of_its_folders(changed: list[str], asked: list[str]) -> None:
    assert markers(changed) == asked


def test_everything_runs_every_night_before_a_release_and_where_a_change_asks_for_it() -> None:
    def runs(workflow: str) -> str:
        jobs = yaml.safe_load((ROOT / ".github/workflows" / workflow).read_text())["jobs"]
        return "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])

    assert "make test-all" in runs("nightly.yml")
    assert "make test-all" in runs("release.yml")
    assert {".ci/run", 'make test-changed SINCE="$SINCE"'} == {*runs("tests.yml").split("\n")} - {
        ""
    }
