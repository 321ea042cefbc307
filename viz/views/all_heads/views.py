"""The views of the page "All heads", by the title of each."""

from collections.abc import Callable

from viz.state.look import Look
from viz.views.all_heads.ablation import ablation
from viz.views.all_heads.compare import compare, means_and_rollout
from viz.views.all_heads.first_token import first_token
from viz.views.all_heads.grid import grid
from viz.views.all_heads.head_results import head_results
from viz.views.all_heads.matrices import as_matrices
from viz.views.all_heads.merging import through_output
from viz.views.all_heads.pairs import from_word_to_word
from viz.views.all_heads.ranking import ranking

VIEWS: dict[str, Callable[[Look], None]] = {
    "Grid": grid,
    "Ranking": ranking,
    "From word to word": from_word_to_word,
    "Why the first token?": first_token,
    "What heads write": head_results,
    "Through W_O": through_output,
    "A head as matrices": as_matrices,
    "Leave one out": ablation,
    "Two sentences or models": compare,
    "Averages and rollout": means_and_rollout,
}
