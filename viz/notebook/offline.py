"""A saved notebook as one page that works without a network, its widgets alive:
`python -m viz.notebook.offline NOTEBOOK.ipynb [-o PAGE.html]`.

`jupyter nbconvert --to html` writes the same page, but that fetches require.js, MathJax and the programs
that draw widgets from content delivery networks whenever it is opened. Here offline.js, a part of the page,
runs the widgets, Plotly's own script draws its figures, and nothing is fetched. So formulas in a notebook's
own words stay as they are written.
Where the package is installed, nbconvert knows it as the format `attention_lens_html`.
"""

import base64
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode, ValidationError, reads

from model.system.commands import CommandParser, command
from model.system.files import LARGEST_JSON, text_of, there, write_whole
from viz.notation.words import sentences_of

say = sentences_of("notebook.offline")

STATES = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
FIGURE = "application/vnd.plotly.v1+json"
_WRITTEN = re.compile(f'(<script type="{re.escape(STATES)}">)(.*?)(?=</script>)', re.DOTALL)
_FETCHED = (
    "require_js_url",
    "mathjax_url",
    "mermaid_js_url",
    "mermaid_layout_elk_js_url",
    "jquery_url",
    "jupyter_widgets_base_url",
)


class OfflineExporter(HTMLExporter):
    """nbconvert's HTML, without its requests, and with Plotly's figures. A widget whose state was not saved
    is the picture that was saved with it, if any. An output that no page can show is named."""

    export_from_notebook = say("html_widgets_alive")  # in JupyterLab's menu

    def __init__(self, **given: Any) -> None:
        from viz.explorer import bundle  # the menu of exports does not wait for it

        program = bundle.alone("offline.js").encode()
        address = f"data:text/javascript;base64,{base64.b64encode(program).decode()}"
        own = dict.fromkeys(_FETCHED, "") | {"widget_renderer_url": address, "embed_images": True}
        super().__init__(**(own | given))
        # nbconvert escapes "/" alone: a token "<!--<script>" would then hide the end of the script.
        self.register_filter("escape_html_script", lambda text: text.replace("<", "\\u003c"))

    def from_notebook_node(  # type: ignore[override]
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        shown = deepcopy(nb)
        lost = lost_widgets(shown)
        for output in lost:
            del output.data[VIEW]
        if lost:
            self.log.info(_said_of(lost))
        _draw_figures(shown)
        for output in _shown(shown):
            if not output.data.keys() & {*self.config.NbConvertBase.display_data_priority}:
                output.data["text/plain"] = say("output_left_out", data=", ".join(output.data))
        page, more = super().from_notebook_node(shown, resources, **kw)
        # In HTML "<!--<script>" makes the next end of a script a part of it.
        return _WRITTEN.sub(lambda found: found[1] + found[2].replace("<", "\\u003c"), page), more


def offline_page(notebook: Path) -> str:
    """The notebook as HTML. Raises ValueError for a file that is no notebook."""
    return _page(_read(notebook), notebook)


def _page(saved: NotebookNode, notebook: Path) -> str:
    about = {"metadata": {"name": notebook.stem, "path": str(notebook.parent)}}
    return OfflineExporter().from_notebook_node(saved, about)[0]


def lost_widgets(notebook: NotebookNode) -> list[NotebookNode]:
    """The outputs with a widget whose state was not saved with the notebook."""
    states = notebook.metadata.get("widgets", {}).get(STATES, {}).get("state", {})
    widgets = (output for output in _shown(notebook) if VIEW in output.data)
    return [output for output in widgets if output.data[VIEW]["model_id"] not in states]


def _shown(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """The outputs with something to be shown, but for what was printed and for errors."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return (output for output in outputs if output.get("data"))


def _draw_figures(notebook: NotebookNode) -> None:
    """Replaces Plotly's figures by what draws them, and writes its script (4 MB) into the first one."""
    figures = [output.data for output in _shown(notebook) if FIGURE in output.data]
    if figures:
        from plotly.io import to_html  # takes half a second
    for number, data in enumerate(figures):
        drawn = {name: data[FIGURE][name] for name in ("data", "layout") if name in data[FIGURE]}
        how = {"include_plotlyjs": number == 0, "full_html": False, "validate": False}
        data["text/html"] = to_html(drawn, data[FIGURE].get("config"), **how)


def _said_of(lost: list[NotebookNode]) -> str:
    return say("still_picture_not", lost=len(lost), value="s" * (len(lost) > 1))


def _read(notebook: Path) -> NotebookNode:
    try:
        return reads(text_of(notebook, LARGEST_JSON), as_version=4)
    except (ValueError, AttributeError, ValidationError, RecursionError) as error:
        raise ValueError(f"{notebook} cannot be read as a notebook.") from error


def main() -> None:
    program = say("python_m_viz_notebook")
    with command(program):
        parser = CommandParser(program, description=__doc__)
        parser.add_argument("notebook", type=Path)
        parser.add_argument("-o", "--output", type=Path, help=say("notebook_html_not"))
        asked = parser.parse_args()
        target = asked.output or asked.notebook.with_suffix(".html")
        saved = _read(there(asked.notebook))
        lost = lost_widgets(saved)
        write_whole(target, _page(saved, asked.notebook).encode())
        if lost:
            print(_said_of(lost), file=sys.stderr)
        print(target)


if __name__ == "__main__":
    main()
