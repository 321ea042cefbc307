"""Which masks a page offers for a model."""

from tests.model.hub_models import loaded
from viz.state.intervention_words import masks_for


def test_a_mask_that_lifts_is_offered_where_there_is_something_to_lift() -> None:
    assert masks_for(loaded("modernbert")) == ["model", "none", "causal"]
    assert masks_for(loaded("bert")) == ["model", "causal"]
    assert masks_for(loaded("llama")) == masks_for(loaded("mistral")) == ["model", "none"]
