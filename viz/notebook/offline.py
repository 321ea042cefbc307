"""A saved notebook as one page that works without a network, its widgets alive:
`python -m viz.notebook.offline NOTEBOOK.ipynb [-o PAGE.html]`.

`jupyter nbconvert --to html` writes the same page, but that fetches require.js, MathJax and the programs
that draw widgets from content delivery networks whenever it is opened. Here offline.js, a part of the page,
runs the widgets, and nothing is fetched. So formulas in a notebook's own words stay as they are written.
Where the package is installed, nbconvert knows it as the format `attention_lens_html`.
"""

import argparse
import base64
from copy import deepcopy
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode, ValidationError, read

STATES = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
_FETCHED = (
    "require_js_url",
    "mathjax_url",
    "mermaid_js_url",
    "mermaid_layout_elk_js_url",
    "jquery_url",
    "jupyter_widgets_base_url",
)


class OfflineExporter(HTMLExporter):
    """nbconvert's HTML, without its requests. A widget whose state was not saved is the picture that was
    saved with it, if any."""

    export_from_notebook = "HTML, widgets alive offline"  # in JupyterLab's menu

    def __init__(self, **given: Any) -> None:
        program = Path(__file__).with_name("offline.js").read_bytes()
        address = f"data:text/javascript;base64,{base64.b64encode(program).decode()}"
        own = dict.fromkeys(_FETCHED, "") | {"widget_renderer_url": address, "embed_images": True}
        super().__init__(**(own | given))

    def from_notebook_node(  # type: ignore[override]
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        shown = deepcopy(nb)
        lost = lost_widgets(shown)
        for output in lost:
            del output.data[VIEW]
        if lost:
            self.log.info(_said_of(lost))
        return super().from_notebook_node(shown, resources, **kw)


def offline_page(notebook: Path) -> str:
    """The notebook as HTML. Raises ValueError for a file that is no notebook."""
    return _page(_read(notebook), notebook)


def _page(saved: NotebookNode, notebook: Path) -> str:
    about = {"metadata": {"name": notebook.stem, "path": str(notebook.parent)}}
    return OfflineExporter().from_notebook_node(saved, about)[0]


def lost_widgets(notebook: NotebookNode) -> list[NotebookNode]:
    """The outputs with a widget whose state was not saved with the notebook."""
    states = notebook.metadata.get("widgets", {}).get(STATES, {}).get("state", {})
    return [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if VIEW in output.get("data", {}) and output.data[VIEW]["model_id"] not in states
    ]


def _said_of(lost: list[NotebookNode]) -> str:
    return (
        f"Still a picture here, not saved with the notebook: {len(lost)} widget{'s' * (len(lost) > 1)}. In "
        "JupyterLab, choose Settings ▸ Save Widget State Automatically, run the cells again and save."
    )


def _read(notebook: Path) -> NotebookNode:
    try:
        return read(notebook, as_version=4)
    except (OSError, ValueError, AttributeError, ValidationError) as error:
        raise ValueError(f"{notebook} cannot be read as a notebook.") from error


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m viz.notebook.offline", description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="NOTEBOOK.html if not given")
    asked = parser.parse_args()
    target = asked.output or asked.notebook.with_suffix(".html")
    try:
        saved = _read(asked.notebook)
        lost = lost_widgets(saved)
        target.write_text(_page(saved, asked.notebook), encoding="utf-8")
    except ValueError as refusal:
        parser.exit(1, f"{refusal}\n")
    except OSError as error:
        parser.exit(1, f"{target} cannot be written: {error.strerror}.\n")
    if lost:
        print(_said_of(lost))
    print(target)


if __name__ == "__main__":
    main()
