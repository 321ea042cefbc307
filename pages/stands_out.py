"""What stands out in a run: each finding with its picture."""

from viz.shell import page
from viz.views.all_heads.remarkable import what_stands_out

page.open_page("pages/stands_out.py")
page.views({"What stands out": what_stands_out}, page.look(full=True))
