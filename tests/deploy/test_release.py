"""The workflow of a release publishes what was tested and built, under the version of its tag, without a
password."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from deploy.wheel import PACKAGE, ROOT
from viz.command.command import version

FILE = ROOT / ".github" / "workflows" / "release.yml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
BUILD, PUBLISH = WORKFLOW["jobs"]["build"], WORKFLOW["jobs"]["publish"]
COMMANDS = [step["run"] for step in BUILD["steps"] if "run" in step]


def test_only_what_was_tested_and_built_here_is_published() -> None:
    assert PUBLISH["needs"] == "build"
    assert not any("run" in step for step in PUBLISH["steps"])
    fetched, published = PUBLISH["steps"]
    sent = BUILD["steps"][-1]
    assert sent["uses"].startswith("actions/upload-artifact@")
    assert fetched["uses"].startswith("actions/download-artifact@")
    assert fetched["with"]["name"] == sent["with"]["name"]
    assert fetched["with"]["path"] == sent["with"]["path"] == "dist"
    assert published["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert COMMANDS[0] == "make test-all"
    assert not any("continue-on-error" in step or "if" in step for step in BUILD["steps"])


def test_only_the_job_that_publishes_may_say_who_it_is_and_nobody_has_a_password() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in BUILD
    assert PUBLISH["permissions"] == {"id-token": "write"}
    assert "secrets" not in FILE.read_text(encoding="utf-8")
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # YAML reads “on” so


def test_a_tag_of_another_version_ends_the_release(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for tag, code in [(f"v{version()}", 0), ("v9.9.9", 1), (version(), 0), ("v", 1)]:
        with subtests.test(tag=tag, code=code):
            tmp_path = tmp_path_factory.mktemp("case")
            folder = tmp_path / tag
            (folder / "dist").mkdir(parents=True)
            (folder / "dist" / f"{PACKAGE}-{version()}-py3-none-any.whl").touch()
            check = COMMANDS[1].partition("make wheel\n")[2]
            environment = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
            ended = subprocess.run(["bash", "-ec", check], cwd=folder, env=environment, check=False)
            assert ended.returncode == code


def test_the_wheel_is_tested_built_and_tried_in_this_order() -> None:
    goals = re.findall(r"\bmake ([\w-]+)", "\n".join(COMMANDS))
    assert goals == ["test-all", "wheel", "wheel-check"]
