"""Heads over a corpus: what every head of a model does over a whole text, as a map, a table and a card."""

from viz.shell import page
from viz.views.corpus.views import corpus

page.open_page("pages/corpus.py")
corpus(page.look())
