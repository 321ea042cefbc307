"""Which masks a page offers for a model."""

from model.nn.intervention import MASKS
from tests.model.hub_models import loaded
from viz.state.intervention_words import masks_for


def test_a_mask_that_lifts_is_offered_where_there_is_something_to_lift() -> None:
    offered = {
        name: {mask for mask in masks_for(loaded(name)) if MASKS[mask].removes_model_mask}
        for name in ("modernbert", "bert", "llama", "mistral")
    }
    assert offered == {
        "modernbert": {"none"},
        "bert": set(),
        "llama": {"none"},
        "mistral": {"none"},
    }


def test_a_mask_that_hides_the_future_is_offered_where_the_model_shows_it() -> None:
    assert "causal" in masks_for(loaded("bert"))
    assert "causal" not in masks_for(loaded("llama"))
