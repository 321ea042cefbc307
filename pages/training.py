"""Training: heads that form along the checkpoints, and a model trained while you look on."""

from viz import shell
from viz.by_hand import by_hand_of
from viz.training.here import here
from viz.training.idea import idea
from viz.training.views import beside, watch

VIEWS = {
    "Watch it form": watch,
    "Untrained beside trained": beside,
    "Train one here": here,
}
BY_HAND = (
    "most-probable-word",
    "all-positions-at-once",
    "softmax-slopes",
    "average-gradient",
    "residual-gradient",
    "to-the-vocabulary",
)


def hand() -> None:
    by_hand_of(BY_HAND)


def live() -> None:
    shell.views(VIEWS)


shell.open_page("pages/training.py")
shell.beats(idea=idea, hand=hand, live=live)
