"""The example notebooks and the code of the guides run from top to bottom against the wheel; the
notebooks say what their cells print."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbformat import NotebookNode

from model.system.extras import EXTRAS
from tools.notebook_of_guide import GUIDE, INSTALL, NOTEBOOK, notebook_of, with_install

pytestmark = pytest.mark.process

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTEBOOKS = sorted({*DOCS.glob("notebooks/*.ipynb")} - {NOTEBOOK})
GUIDES = [
    DOCS / f"{name}.md"
    for name in ("figures", "notebooks", "own-modules", "short-tasks", "trace-format")
]
SAID = re.compile(r"`(\d[\d.,]*|True|False)`")  # a result, as the words of a notebook quote it
WIDGETS = "application/vnd.jupyter.widget-view+json"
MOST_LINES = 15  # of a script of the research guide
SECONDS = 500  # for a cell on a machine shared with others


def printed(cell: NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def unsaid(notebook: NotebookNode) -> list[str]:
    """The results in the words of a notebook that no cell above them has printed."""
    found, above = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            printed_above = set(re.findall(r"[\w.,-]+", above))
            found += [said for said in SAID.findall(cell.source) if said not in printed_above]
        above += printed(cell)
    return found


@pytest.fixture
def kernel(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AsyncKernelManager]:
    """A kernel that has the package as it is in the wheel, and none of the tree's names. All notebooks and
    guides share it: its imports take longer than their cells."""
    packages = tmp_path / "packages"
    ZipFile(wheel).extractall(packages)
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    manager = AsyncKernelManager()
    environment = os.environ | {"PYTHONPATH": str(packages)}
    run_sync(manager.start_kernel)(env=environment, cwd=str(tmp_path))
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


def boxes(guide: Path) -> NotebookNode:
    """The code of a guide, each of its boxes as a cell."""
    found = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(box) for box in found])


def ran(notebook: NotebookNode, kernel: AsyncKernelManager, place: Path) -> list[NotebookNode]:
    """Runs it in a folder of its own, with no name of another one; returns what its cells show."""
    place.mkdir()
    notebook.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {place}"))
    client = NotebookClient(notebook, km=kernel, timeout=SECONDS, startup_timeout=SECONDS)
    client.execute()
    client.kc.stop_channels()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output["text"] for output in shown if output.get("name") == "stderr"] == [], place.name
    return shown


def test_notebooks_and_guides_run_and_say_what_they_print(
    kernel: AsyncKernelManager, tmp_path: Path
) -> None:
    for file in NOTEBOOKS:
        notebook = nbformat.read(file, as_version=4)
        assert not any(
            cell.get("outputs") for cell in notebook.cells
        )  # kept without what they print
        shown = ran(notebook, kernel, tmp_path / file.stem)
        assert unsaid(notebook) == [], file.stem
        assert any(WIDGETS in output.get("data", {}) for output in shown), file.stem
    for guide in GUIDES:
        shown = ran(boxes(guide), kernel, tmp_path / f"{guide.stem}.md")
        assert shown, guide.stem
        printed_first = {
            "own-modules": "causal 4 0.3535",
            "figures": "42.52 of 42.52\n1.29\n(4, 8)",
        }
        said = printed(nbformat.from_dict({"outputs": shown}))
        assert said.startswith(printed_first.get(guide.stem, "")), guide.stem


def test_each_script_of_the_research_guide_runs_alone_and_prints_what_the_guide_says(
    kernel: AsyncKernelManager, tmp_path: Path
) -> None:
    guide = notebook_of(GUIDE.read_text(encoding="utf-8"))
    scripts = [cell for cell in guide.cells if cell.cell_type == "code"]
    assert len(scripts) >= 8
    for script in scripts:
        lines = [line for line in script.source.splitlines() if line.strip()]
        assert len(lines) <= MOST_LINES, script.source
    for at, cell in reversed([*enumerate(guide.cells)]):
        if cell.cell_type == "code" and cell is not scripts[0]:
            guide.cells.insert(at, nbformat.v4.new_code_cell("%reset -f"))
    shown = ran(guide, kernel, tmp_path / "research")
    assert unsaid(guide) == []
    assert all(printed(script) for script in scripts)
    assert {file.suffix for file in (tmp_path / "research").iterdir()} >= {".html", ".csv"}
    assert shown


def test_the_notebook_of_the_research_guide_has_its_words_and_scripts() -> None:
    written = with_install(notebook_of(GUIDE.read_text(encoding="utf-8")))
    assert nbformat.read(NOTEBOOK, as_version=4) == written


def test_every_notebook_first_installs_what_colab_lacks() -> None:
    extras = re.findall(r"attention-lens\[([\w,]+)\]", INSTALL)[0].split(",")
    assert set(extras) <= set(EXTRAS.values())
    for file in [*NOTEBOOKS, NOTEBOOK]:
        cells = nbformat.read(file, as_version=4).cells
        assert next(cell.source for cell in cells if cell.cell_type == "code") == INSTALL, file.stem


def test_a_number_that_no_cell_printed_is_found() -> None:
    code = nbformat.v4.new_code_cell("print(0.13)")
    code.outputs = [nbformat.v4.new_output("stream", text="13 heads, 0.13\n")]
    words = [nbformat.v4.new_markdown_cell(f"It is `{number}`.") for number in ("0.13", "0.14")]
    assert unsaid(nbformat.v4.new_notebook(cells=[code, *words])) == ["0.14"]
    assert unsaid(nbformat.v4.new_notebook(cells=[words[0], code])) == ["0.13"]
