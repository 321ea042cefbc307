"""Training: a head that forms along the checkpoints, and a model trained while you look on."""

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import Panel
from viz.views.training.choice import trains_here
from viz.views.training.here import here
from viz.views.training.views import idea, watch
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.training")

BY_HAND = (
    "most-probable-word",
    "all-positions-at-once",
    "softmax-slopes",
    "average-gradient",
    "residual-gradient",
    "to-the-vocabulary",
)

OPENING = say("model_begins_random")


def forming() -> Panel:
    """The shipped trainings and the visitor's own records, or a run that trains here."""
    return here() if trains_here() else watch()


page.open_page("pages/training.py")
page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(*BY_HAND),
    live=lambda: page.views({"Training": forming}),
)
