"""Code: the open model as one readable listing of PyTorch, with live shapes, and a script that runs alone."""

from viz.shell import page
from viz.views.code.views import model_as_code

page.open_page("pages/model_as_code.py")
look = page.look(head=True)
model_as_code(look)
