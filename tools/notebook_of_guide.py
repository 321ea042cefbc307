"""`python -m tools.notebook_of_guide` writes docs/research.md as docs/notebooks/research.ipynb."""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

DOCS = Path(__file__).parents[1] / "docs"
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


if __name__ == "__main__":
    nbformat.write(notebook_of(GUIDE.read_text(encoding="utf-8")), NOTEBOOK)
    print(f"Wrote {NOTEBOOK}.")
