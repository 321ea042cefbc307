"""The checked-in bundle is what the bundler makes of the modules as they stand."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from viz.explorer import bundle

OTHERS = (
    "viz/views/training/player",
    "viz/shell/head_picker",
    "viz/shell/keys",
    "viz/notebook",
    "viz/views/corpus/component",
    "viz/views/home",
    "viz/views/glossary",
    "viz/site",
    "words",
)  # use its modules
REPOSITORY = Path(__file__).resolve().parents[3]


def bundled(folder: Path, sources: Path = REPOSITORY) -> dict[str, bytes]:
    """What the bundler makes of the sources. Where it is not installed, this fails: nothing is skipped."""
    command = ["npm", "run", "--silent", "bundle", "--", f"--outdir={folder}"]
    made = subprocess.run(command, cwd=sources, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, f"{made.stderr}\n`make bundle` installs the bundler."
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_bundle_is_made_of_the_modules_as_they_stand(tmp_path: Path) -> None:
    assert bundled(tmp_path) == contents(bundle.BUNDLED), "run `make bundle`"


@pytest.mark.parametrize(("source", "old", "new"), [
    ("js/numbers.js", "1e6", "1e7"),
    ("css/picture.css", "150px", "151px"),
    ("component.css", "15px", "16px"),
])  # fmt: skip
def test_a_change_of_a_source_changes_the_bundle(
    tmp_path: Path, source: str, old: str, new: str
) -> None:
    explorer = tmp_path / "viz" / "explorer"
    shutil.copytree(bundle.FOLDER, explorer)
    for other in OTHERS:
        shutil.copytree(REPOSITORY / other, tmp_path / other)
    shutil.copy(REPOSITORY / "package.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(REPOSITORY / "node_modules")
    written = (explorer / source).read_text(encoding="utf-8")
    assert old in written
    (explorer / source).write_text(written.replace(old, new), encoding="utf-8")
    assert bundled(tmp_path / "made", tmp_path) != contents(bundle.BUNDLED)


def test_the_script_stands_alone_and_serves_the_app_notebooks_and_sites() -> None:
    script = bundle.script()
    assert re.search(r"\bimport\b ?[{*\"]", script) is None
    assert script.count("export{") == 1
    assert script.rstrip().endswith("export{mountInApp as default,mount};")
    site = bundle.alone("site.js")
    assert re.search(r"\b(?:import|export)\s*\{", site) is None  # a classic script
    assert site.count("const mount = ") == 1
    assert bundle.alone("offline.js").count("\n") < 20  # nothing of the explorer
