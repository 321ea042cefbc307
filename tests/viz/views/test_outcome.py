"""What comes of a run, beside the map: against PyTorch's cross-entropy and softmax."""

import re

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from model import Intervention, load_model
from tests.pages.reading import visit
from viz.state.link import View

UNMASKED = Intervention(mask="none")


def logits_and_tokens(intervention: Intervention) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the model itself, without a trace: (token, vocabulary), and the ids (token,)."""
    model = load_model("house-gpt")
    trace = model.trace(View().text, intervention=intervention)
    ids = torch.tensor([token.id for token in trace.tokens])
    return torch.from_numpy(trace.require_prediction().rows(0, len(ids)).copy()), ids


def shown() -> str:
    """The rows and the loss, as the page has them, without markup."""
    app = visit("home", mask="none")
    drawn = " ".join(one.value for one in app.get("html") if 'class="outcome"' in one.value)
    return re.sub(r"<style>.*</style>|<[^>]+>", " ", drawn, flags=re.DOTALL)


def test_the_losses_and_probabilities_are_pytorchs() -> None:
    words = shown()
    losses = []
    for change in (Intervention(), UNMASKED):
        logits, ids = logits_and_tokens(change)
        losses.append(float(cross_entropy(logits[:-1], ids[1:])))
        assert f"{float(torch.softmax(logits[-1].double(), -1).max()):.3f}" in words
    was, now = (f"{loss:.3f}" for loss in losses)
    assert f"{was} → {now}" in words


def test_how_sure_the_model_was_of_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "viz.views.home.explore.outcome", lambda look, hero: seen.append(hero), raising=True
    )
    visit("home", mask="none")
    hero = seen[-1]
    for name, change in (("before", Intervention()), ("after", UNMASKED)):
        logits, ids = logits_and_tokens(change)
        shares = torch.softmax(logits[:-1].double(), -1)[torch.arange(len(ids) - 1), ids[1:]]
        first, *rest = hero.sure[name]
        assert first is None
        np.testing.assert_allclose(rest, shares, atol=1e-6)
    assert hero.change == "No mask"


def test_an_encoder_has_no_loss_and_no_sure_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("viz.views.home.explore.outcome", lambda look, hero: seen.append(hero))
    visit("home", model="minilm")
    assert seen[-1].loss is None
    assert seen[-1].sure is None
