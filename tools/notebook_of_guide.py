"""`python -m tools.notebook_of_guide` writes docs/research.md as docs/notebooks/research.ipynb."""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

DOCS = Path(__file__).parents[1] / "docs"
# The first cell of code of every notebook.
INSTALL = """\
# In Colab: from the package index, or write the name of a wheel that you have uploaded.
import sys

if "google.colab" in sys.modules:
    %pip install --quiet "attention-lens[hub,notebook,profile]"
    from google.colab import output

    output.enable_custom_widget_manager()"""
GUIDE, NOTEBOOK = DOCS / "research.md", DOCS / "notebooks" / "research.ipynb"


def notebook_of(guide: str) -> NotebookNode:
    """Its words and its boxes of code as cells, without outputs. Links lead one folder up."""
    cells = []
    for at, part in enumerate(re.split(r"```python\n(.*?)```\n", guide, flags=re.DOTALL)):
        words = re.sub(r"\]\((?!https?:|#)", "](../", part)
        made = nbformat.v4.new_code_cell(part) if at % 2 else nbformat.v4.new_markdown_cell(words)
        made.source, made.id = made.source.strip(), f"cell-{at}"
        cells.append(made)
    return nbformat.v4.new_notebook(cells=cells)


def with_install(notebook: NotebookNode) -> NotebookNode:
    """The notebook with INSTALL before its first cell of code."""
    first = next(at for at, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    notebook.cells.insert(first, nbformat.v4.new_code_cell(INSTALL, id="install"))
    return notebook


if __name__ == "__main__":
    nbformat.write(with_install(notebook_of(GUIDE.read_text(encoding="utf-8"))), NOTEBOOK)
    print(f"Wrote {NOTEBOOK}.")
