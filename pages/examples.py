"""Examples: sentences worth opening, each with the head to look at and what is to be seen."""

from viz import shell
from viz.example_list import example_list

shell.open_page("pages/examples.py")
example_list()
