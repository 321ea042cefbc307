"""The explorer in a notebook: `show` one run, or `compare` two.

    from model import load_model
    from viz.notebook import show

    picture = show(load_model("house-gpt"), "The cat sat on the mat")
    picture            # heads, stages and cells are chosen in it
    picture.head = 3   # or here
    picture.weight     # of the chosen cell

It needs `anywidget` (requirements-notebook.txt), and neither Streamlit nor a network. Each name is imported
when it is first used: JupyterLab's menu of exports imports `offline` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viz.notebook.showing import compare, show
    from viz.notebook.widget import AttentionExplorer

__all__ = ["AttentionExplorer", "compare", "show"]
_HOMES = {
    "AttentionExplorer": "viz.notebook.widget",
    "compare": "viz.notebook.showing",
    "show": "viz.notebook.showing",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
