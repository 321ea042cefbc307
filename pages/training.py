"""Training: heads that form along the checkpoints, and a model trained while you look on."""

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.training.choice import BESIDE, TRAIN_HERE
from viz.views.training.here import here
from viz.views.training.views import beside_recurrent, idea, tried, watch
from viz.views.worked.by_hand import by_hand

VIEWS: dict[str, PanelView] = {
    "Watch it form": watch,
    TRAIN_HERE: here,
    "Claims": tried,
    BESIDE: beside_recurrent,
}
BY_HAND = (
    "most-probable-word",
    "all-positions-at-once",
    "softmax-slopes",
    "average-gradient",
    "residual-gradient",
    "to-the-vocabulary",
)

OPENING = (
    "A model begins with random numbers, and each step of **training** moves them a little so "
    "that the right next token becomes more probable. Heads that do a job form on the way, often "
    "within a few steps."
)


page.open_page("pages/training.py")
page.beats(
    opening=OPENING, idea=idea, hand=lambda: by_hand(*BY_HAND), live=lambda: page.views(VIEWS)
)
