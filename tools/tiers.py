"""Which of the tests that `make test` leaves out a change asks for: `python -m tools.tiers COMMIT` prints an
expression of pytest's markers, or nothing. It compares the working tree with that commit.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A change below one of these asks for the marker's tests. What all share asks for all of them.
FOLDERS = {
    "process": (
        "app.py", "viz/server", "viz/command", "viz/chat", "viz/notebook", "model/system", "model/training",
        "model/hub", "model/download", "docs/notebooks", "tests/faults", "tests/browser/notebooks",
    ),
    "ray": ("model/serving", "model/profile", "model/system", "deploy"),
    "wheel": ("deploy", "pyproject.toml", "requirements.txt"),
    "firefox": ("viz/site", "viz/explorer", "tests/browser/site"),
    "walk": ("app.py", "pages", "viz", "static", "words", "tests/browser"),
    "slow": ("model", "pages", "viz", "tools/training"),
}  # fmt: skip
FAST = f"not ({' or '.join(FOLDERS)})"  # the tests of `make test`
SHARED = ("tests/conftest.py", "requirements-dev.txt", "Makefile")


def markers(changed: Iterable[str]) -> list[str]:
    """Those that a change of these paths asks for: a test asks as the folder does that it mirrors."""
    paths = [Path(path) for name in changed for path in (name, name.removeprefix("tests/"))]

    def touches(folders: Iterable[str]) -> bool:
        return any(path.is_relative_to(folder) for path in paths for folder in folders)

    return [marker for marker, folders in FOLDERS.items() if touches((*folders, *SHARED))]


def changed_since(commit: str) -> list[str]:
    """Paths that differ from those of a commit. Raises CalledProcessError where there is none."""
    command = ["git", "diff", "--name-only", commit, "--"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


if __name__ == "__main__":
    print(" or ".join(markers(changed_since(sys.argv[1]))))
