"""Which masks a page offers for a model."""

import numpy as np
import pytest

from model.nn.intervention import MASKS, Mask
from tests.model.hub_models import loaded
from tests.pages.reading import named, visit
from viz.state.intervention_words import hides_future, masks_for, other_mask


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


def test_the_switch_leads_to_the_mask_that_does_the_opposite() -> None:
    assert {name: other_mask(loaded(name)) for name in ("llama", "bert", "modernbert")} == {
        "llama": "none",
        "bert": "causal",
        "modernbert": "causal",  # "none" lifts its windows, and hides nothing
    }


def test_a_mask_of_its_own_kind_is_not_taken_for_the_opposite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = Mask("every token", "every", ("decoder",), pattern=lambda q, k: np.ones((q, k), bool))
    monkeypatch.setitem(MASKS, "every", every)  # type: ignore[index]
    llama = loaded("llama")
    assert hides_future(llama, "every")  # type: ignore[arg-type]
    assert other_mask(llama) == "none"


def test_the_switch_stays_on_where_a_translator_hides_more_of_the_future() -> None:
    for mask, is_on in (("model", True), ("causal", True), ("none", False)):
        app = visit("home", model="translate-en-fr", text="the cat is black", mask=mask)
        assert named(app.toggle, "hero-mask").value == is_on
