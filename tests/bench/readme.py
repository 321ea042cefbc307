"""The section of the README that quotes the measured numbers, and the guide's words on replicas.

`python -m tests.bench.readme` writes both anew from docs/bench/*.json.
"""

import json
from pathlib import Path

from model.loading.marked import rewrite
from tests.bench.tables import NOTES, TABLES, TITLES, Measured, sizing

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "bench"
README = ROOT / "README.md"
BEGIN, END = "<!-- benchmarks: written by `make bench` -->", "<!-- end of benchmarks -->"
BEFORE = "## Settings"  # where the section goes when there is none yet
SERVING = ROOT / "docs" / "serving-a-class.md"


def section(folder: Path = FOLDER) -> str:
    """The README's section from the files of a folder; nothing if there are none."""
    found = {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in TABLES
        if (folder / f"{name}.json").is_file()
    }
    if not found:
        return ""
    lines = [BEGIN, "## Benchmarks", _machine(next(iter(found.values()))["machine"])]
    for name, measured in found.items():
        lines += [f"### {TITLES[name]}", NOTES[name], TABLES[name](measured)]
    return "\n\n".join([*lines, END])


def quoted(readme: str) -> str:
    """The section as a README has it; nothing if it has none."""
    if BEGIN not in readme:
        return ""
    return readme[readme.index(BEGIN) : readme.index(END) + len(END)]


def write_readme() -> None:
    """Puts the section into the README, in place of the one that is there."""
    readme, new = README.read_text(encoding="utf-8"), section()
    old = quoted(readme)
    if old:
        readme = readme.replace(old, new)
    else:
        readme = readme.replace(BEFORE, f"{new}\n\n{BEFORE}", 1)
    README.write_text(readme, encoding="utf-8")


def write_sizing() -> None:
    """Tells the guide on serving a class what one replica was seen to serve."""
    measured = json.loads((FOLDER / "classroom.json").read_text(encoding="utf-8"))
    rewrite(SERVING, sizing(measured), "<!-- sizing: begin -->", "<!-- sizing: end -->")


def _machine(facts: Measured) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f"`make bench` measures all of this side by side in one run. Here: {facts['processor']}, "
        f"{facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}, Python "
        f"{facts['python']}, {versions}."
    )


if __name__ == "__main__":
    write_readme()
    write_sizing()
