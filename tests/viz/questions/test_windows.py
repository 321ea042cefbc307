"""Questions about masks on a model whose every other layer has a window."""

from functools import cache

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
