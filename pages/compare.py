"""Compare: two maps side by side."""

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.all_heads.averages import averages
from viz.views.all_heads.compare import two_models, two_sentences
from viz.views.all_heads.trained import two_runs, untrained

page.open_page("pages/compare.py")
look = page.look(head=True)

VIEWS: dict[str, PanelView] = {
    "Two sentences": two_sentences,
    "Two models": two_models,
    "Averages": averages,
    "Untrained": untrained,
    "Two runs": two_runs,
}

page.views(VIEWS, look)
