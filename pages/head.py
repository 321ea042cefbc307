"""One head: what it attends to, its job with the evidence, its matrices, how it is joined."""

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.all_heads.matrices import as_matrices
from viz.views.all_heads.writing import through_output

page.open_page("pages/head.py")
look = page.look(head=True)

VIEWS: dict[str, PanelView] = {
    "What do its matrices do?": as_matrices,
    "How are they joined?": through_output,
}

page.views(VIEWS, look)
