"""One head: what it attends to, its job with the evidence, its matrices, how it is joined."""

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.all_heads.joined import through_output
from viz.views.all_heads.matrices import as_matrices
from viz.views.all_heads.one_head import one_head

page.open_page("pages/head.py")
look = page.look(head=True)

VIEWS: dict[str, PanelView] = {"Map": one_head}
if look.model.runs:  # a recorded run has no matrices
    VIEWS |= {"Matrices": as_matrices, "Joined": through_output}

page.views(VIEWS, look)
