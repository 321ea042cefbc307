"""The lock files are current, have hashes, and are what every install takes."""

import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.version import Version

from tests.deploy.lock import NOT_LOCKED, Pin, locked, otherwise_installed, problems, requirements

REPOSITORY = Path(__file__).resolve().parents[1]
NAMES = tuple(f"requirements{part}" for part in ("", "-cluster", "-dev", "-npm", "-uv"))
INSTALL = ("--require-hashes", "--no-deps", "--only-binary :all:")


def wanted(name: str = "requirements") -> list[Requirement]:
    return requirements(REPOSITORY / f"{name}.txt")


def pins(name: str = "requirements") -> list[Pin]:
    return locked((REPOSITORY / f"{name}.lock").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_each_lock_holds_what_is_needed_on_every_system_and_nothing_else(name: str) -> None:
    assert problems(wanted(name), pins(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_names_no_place_to_fetch_from(name: str) -> None:
    text = (REPOSITORY / f"{name}.lock").read_text()
    assert not re.search(r"://|--(extra-)?index-url|--find-links", text)


def test_what_is_installed_is_what_is_locked() -> None:
    assert otherwise_installed(pins("requirements-dev")) == []


def test_the_tests_run_with_the_very_packages_of_the_app() -> None:
    assert set(map(str, pins())) <= set(map(str, pins("requirements-dev")))


def test_pytorch_needs_what_the_lock_was_made_for() -> None:
    """A build with CUDA, or another device's, needs that besides; no other build needs more."""
    pinned = next(line for line in wanted() if line.name == "torch")
    assert pinned.specifier.contains(Version(metadata.version("torch")).public)
    said = [Requirement(line) for line in metadata.requires("torch") or []]
    plain = {str(line) for line in said if line.marker is None}
    told = {str(Requirement(line)) for line in NOT_LOCKED["torch"]}
    assert told <= plain
    assert told == plain or torch.version.cuda or torch.version.hip or torch.version.xpu


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (r"numpy==\S+", "numpy==0.1", "the project needs numpy==0.1, but "),
        (
            r"numpy==",
            "hypothesis==1\nnumpy==",
            "the project needs hypothesis, which is not locked on linux",
        ),
        (r"streamlit==\S+", "", "streamlit is locked, but nothing needs it on darwin"),
    ],
    ids=["another version", "one more", "one less"],
)
def test_a_change_of_the_requirements_alone_is_found(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(re.sub(before, after, (REPOSITORY / "requirements.txt").read_text()))
    assert any(problem.startswith(said) for problem in problems(requirements(file), pins()))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (r"altair==\S+", "altair==0.1", "streamlit needs altair"),
        (r"jinja2==", "jinja3==", "torch needs jinja2, which is not locked"),
        (r"colorama==", "color==", " needs colorama, which is not locked on win32"),
        (r" ; sys_platform == 'win32'", "", "colorama is locked, but nothing needs it on linux"),
    ],
    ids=["too old", "one less", "one less elsewhere", "without its condition"],
)
def test_a_change_of_the_lock_alone_is_found(before: str, after: str, said: str) -> None:
    text = re.sub(before, after, (REPOSITORY / "requirements.lock").read_text())
    assert any(said in problem for problem in problems(wanted(), locked(text)))


@pytest.mark.parametrize(
    "line", ["numpy==2.4.6", "numpy>=2 --hash=sha256:" + "0" * 64, "numpy==2.*"]
)
def test_a_lock_without_hash_or_version_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="numpy"):
        locked(line)


def test_another_installed_version_is_found() -> None:
    other = Pin(Requirement("numpy==0.1"), frozenset({"0" * 64}))
    missing = Pin(Requirement("no-such-package==1"), frozenset({"0" * 64}))
    elsewhere = Pin(Requirement("no-such-package==1; sys_platform == 'amiga'"), frozenset())
    assert otherwise_installed([other, missing, elsewhere]) == ["numpy", "no-such-package"]


@pytest.mark.parametrize(("goal", "lock"), [
    (".venv/.installed-run", "requirements.lock"),
    (".venv/.installed-dev", "requirements-dev.lock"),
    (".venv-lock/.installed", "requirements-uv.lock"),
    (".venv-npm/.installed", "requirements-npm.lock"),
])  # fmt: skip
def test_make_installs_by_hash(goal: str, lock: str) -> None:
    command = ["make", "--dry-run", "--always-make", goal]
    said = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    line = next(line for line in said.splitlines() if f"-r {lock}" in line)
    assert all(option in line for option in INSTALL)


def test_the_image_is_installed_by_hash() -> None:
    text = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ")
    for lock in ("requirements.lock", "requirements-cluster.lock", "requirements-uv.lock"):
        before = text.split(f"--requirement /tmp/{lock}")[0].split("pip install")[-1]
        assert all(option in before for option in INSTALL), lock
