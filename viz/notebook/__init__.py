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

from typing import TYPE_CHECKING

from model.system.later import later

if TYPE_CHECKING:
    from viz.notebook.widget import AttentionExplorer, compare, show

__all__ = ["AttentionExplorer", "compare", "show"]

__getattr__, __dir__ = later(__name__, dict.fromkeys(__all__, "widget"), needs="anywidget")
