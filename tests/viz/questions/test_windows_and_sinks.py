"""Questions about masks on a model whose every other layer has a window, and whose heads have sinks."""

from functools import cache

import pytest

from model import Intervention, Trace
from tests.model.tiny import loaded
from viz.questions import interventions
from viz.questions.question import Scene

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


def scene(place: str, head: int) -> Scene:
    model = loaded("all-stages")

    @cache
    def run(intervention: Intervention) -> Trace:
        return model.trace(TEXT, intervention=intervention)

    return Scene(run, model.tokenizer.named, place, head, model.unembed)


def test_a_window_hides_earlier_tokens_from_the_last_row_too() -> None:
    windowed = scene("decoder.0.self", 0)
    mask = windowed.attention.mask_of(0)
    assert mask is not None
    assert not mask[-1].all()
    assert interventions.lifted_mask(windowed, 0) is None


def test_a_row_is_shared_with_the_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interventions, "CLEAR", 0.0)  # random weights prefer no key by much
    question = interventions.first_row_unmasked(scene("decoder.1.self", 0), 0)
    assert question is not None
    assert "among all keys that a query may attend to and the head's sink." in question.why
