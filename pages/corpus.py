"""Heads over a corpus: what every head of a model does over a whole text, as a map, a table and a card."""

from viz.shell import page
from viz.views.corpus.choice import own_text
from viz.views.corpus.views import HEADS, OWN, heads

page.open_page("pages/corpus.py")
page.views({HEADS: heads, OWN: own_text}, page.look())
