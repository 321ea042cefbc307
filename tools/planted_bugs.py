"""Which tests notice a bug: `python -m tools.planted_bugs [NAME …]` plants each of tools/planted_bugs.toml in
a copy of the tree and runs what `make test` has of the test files that should fail; --fast runs those of them
that need no browser and names each test that notices; --all runs every test that needs no browser.

A bug that no test notices, a text that does not occur exactly once, and a tree whose tests fail without any
bug are errors, and the run ends with 1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.tiers import FAST

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = (".venv", "node_modules")  # linked, not copied
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
TESTS_FAILED = 1  # pytest's exit status
IN_A_BROWSER = "tests/browser"


@dataclass(frozen=True)
class PlantedBug:
    """A text of a file, what stands there instead, and the files of tests that notice it."""

    name: str
    file: str
    text: str
    bug: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """The source with the bug. Raises ValueError where its text does not occur exactly once."""
        if (count := source.count(self.text)) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {count} times.")
        return source.replace(self.text, self.bug)

    @property
    def fast_tests(self) -> tuple[str, ...]:
        """The files of tests that need no browser."""
        return tuple(test for test in self.tests if not test.startswith(IN_A_BROWSER))


def planted_bugs() -> tuple[PlantedBug, ...]:
    """All of the list."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(
        PlantedBug(name, **(entry | {"tests": tuple(entry["tests"])}))
        for name, entry in listed.items()
    )


def copy_tree(to: Path) -> None:
    """The files of this repository as they are now, committed or not: a repository too, as tests ask it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if name not in INSTALLED and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    for arguments in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *arguments], cwd=to, check=True)
    (to / ".git/info/exclude").write_text("\n".join(INSTALLED), encoding="utf-8")
    for name in INSTALLED:
        (to / name).symlink_to((ROOT / name).resolve())


def failures(tree: Path, tests: tuple[str, ...], marks: str) -> tuple[str, ...]:
    """The tests with these markers that fail in a tree. Raises RuntimeError where none ran."""
    line = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "--color=no"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [tree / ".venv/bin/python", *line, "-m", marks, *tests],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    failed = tuple(FAILED.findall(run.stdout))
    if run.returncode not in (0, TESTS_FAILED) and not failed:
        raise RuntimeError(run.stdout[-2000:] + run.stderr[-2000:])
    return failed


def bundle(tree: Path) -> None:
    """What the browser loads, made of the tree's scripts."""
    line = ["npm", "run", "--silent", "bundle", "--", "--outdir=viz/explorer/bundled"]
    subprocess.run(line, cwd=tree, check=True)


def try_bug(tree: Path, bug: PlantedBug, tests: tuple[str, ...], marks: str) -> tuple[str, ...]:
    """Those of some tests that notice a bug, which is taken out again."""
    file = tree / bug.file
    source = file.read_text(encoding="utf-8")
    is_script = file.suffix == ".js"
    file.write_text(bug.planted(source), encoding="utf-8")
    try:
        if is_script:
            bundle(tree)
        return failures(tree, tests, marks)
    finally:
        file.write_text(source, encoding="utf-8")
        if is_script:
            bundle(tree)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.planted_bugs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the bugs to plant; all without")
    parser.add_argument("--all", action="store_true", help="every test that needs no browser")
    parser.add_argument("--fast", action="store_true", help="no browser; name tests that notice")
    parser.add_argument("--without", action="store_true", help="first run the tests without a bug")
    asked = parser.parse_args()
    bugs = [bug for bug in planted_bugs() if not asked.names or bug.name in asked.names]
    chosen = {bug: bug.fast_tests if asked.fast else bug.tests for bug in bugs}
    bugs = [bug for bug in bugs if chosen[bug]]
    every, marks = ("tests", f"--ignore={IN_A_BROWSER}"), "" if asked.all else FAST
    unnoticed = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        tests = tuple(sorted({test for bug in bugs for test in chosen[bug]}))
        if asked.without and (failed := failures(tree, tests, marks)):
            print("Without any bug there fail:", *failed, sep="\n  ")
            return 1
        for bug in bugs:
            start = time.monotonic()
            noticed = try_bug(tree, bug, every if asked.all else chosen[bug], marks)
            unnoticed += [] if noticed else [bug.name]
            seconds = time.monotonic() - start
            print(f"{bug.name}: {len(noticed)} tests notice it ({seconds:.0f} s)", flush=True)
            for test in sorted({one if asked.fast else one.partition("::")[0] for one in noticed}):
                print(f"  {test}", flush=True)
    print(f"{len(bugs) - len(unnoticed)} of {len(bugs)} bugs are noticed.", *unnoticed, sep="\n  ")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
