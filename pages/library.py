"""Library: questions with their answers, terms and examples, in one list that is searched."""

from functools import partial

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.library.entries import KINDS
from viz.views.library.shelf import shelf

VIEWS: dict[str, PanelView] = {
    "All": partial(shelf, None),
    **{kind: partial(shelf, kind) for kind in KINDS},
}

page.open_page("pages/library.py")
page.views(VIEWS)
