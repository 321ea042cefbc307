"""The views of the page "Attention", by the title of each."""

from viz.shell import page
from viz.shell.panel import View
from viz.state.look import Look
from viz.views.attention.edges import edges
from viz.views.attention.projected import sum_of_products
from viz.views.attention.why import why_this_score
from viz.views.laboratory.effects import effect_on_prediction


def step_by_step(seen: Look) -> None:
    """The explorer, and below it what a change does to the prediction."""
    page.explore(seen, layers=True)
    effect_on_prediction(seen)


VIEWS: dict[str, View] = {
    "Step by step": step_by_step,
    "Why this score?": why_this_score,
    "A sum of products": sum_of_products,
    "Edges": edges,
}
