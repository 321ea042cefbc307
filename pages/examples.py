"""Examples: sentences worth opening, each with the head to look at and what is to be seen."""

from viz.shell import page
from viz.views.examples.example_list import example_list

page.open_page("pages/examples.py")
example_list()
