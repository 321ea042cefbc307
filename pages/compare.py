"""Compare: two maps side by side."""

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.all_heads.compare import compare, means_and_rollout
from viz.views.all_heads.first_difference import first_difference_of

page.open_page("pages/compare.py")
look = page.look(head=True)

VIEWS: dict[str, PanelView] = {
    "Two sentences or models": compare,
    "Averages and rollout": means_and_rollout,
    "First difference": first_difference_of,
}

page.views(VIEWS, look)
