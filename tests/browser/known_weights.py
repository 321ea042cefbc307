"""Known weights as the app draws them: `python -m streamlit run tests/browser/known_weights.py`.

They are few enough for wide cells, and reach from nothing over the smallest to all.
"""

import numpy as np

from model.analysis.heads.statistics import Tiles
from model.trace.arrays import read_only
from model.trace.records import Token
from model.training.checkpoints import (
    CheckpointTrace,
    CheckpointTraces,
    WeightMovement,
    shipped_training_run,
)
from tests.viz.explorer.records import labels, weighing
from viz.elements.plot import plot
from viz.figures.head_tiles import head_grid
from viz.figures.heatmap import weights_of_head
from viz.views.training.player import message, player

WEIGHTS = np.array(
    [[0, 5e-5, 0.022, 0.12, 0.5, 1 - 0.64205], [1, 0, 0, 0, 0, 0]]
)  # (query, key): the whole of a row on its first key


def draw() -> None:
    """The pictures that Streamlit mounts."""
    attention = weighing(WEIGHTS)
    queries, keys = labels(2), labels(6)
    plot(weights_of_head(attention, 0, queries=queries, keys=keys), "heatmap", width=700)
    nothing = read_only(np.zeros((1, *WEIGHTS.shape), bool))
    found = Tiles((attention.name,), read_only(WEIGHTS[None, None]), nothing, (1, 1))
    plot(head_grid(found, chosen=None, words=["L0H0"]), "grid", width=700)
    tokens = tuple(Token(at, word) for at, word in enumerate(keys))
    trace = CheckpointTrace(tokens, tokens[:2], {attention.name: attention}, 0.0)
    still = WeightMovement((), read_only(np.zeros((1, 0))), read_only(np.zeros((1, 0))))
    told = message(
        shipped_training_run("induction"),
        CheckpointTraces("", (0,), (trace,), 0),
        still,
        place=attention.name,
        head=0,
    )
    player(told, mount="player")


if __name__ == "__main__":
    draw()
