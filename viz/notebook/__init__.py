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
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viz.notebook.widget import AttentionExplorer, compare, show

__all__ = ["AttentionExplorer", "compare", "show"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("viz.notebook.widget"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Without the public names where they cannot be imported: `help` reads each of the others."""
    return sorted({*globals(), *(__all__ if find_spec("anywidget") else ())})
