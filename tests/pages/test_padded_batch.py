"""A padded batch on the page: three tables of 0 and 1, and what padding takes without its mask."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.padded_batch import padded_batch
from model.loading.registry import models
from tests.cases import cases
from tests.model.tiny import SHAPES, sentence
from tests.pages.reading import choose, numbers, own, said, visit

TEXT, SECOND = "Tom Hill saw a red ball", "Tom Hill saw"


def opened(**parameters: str) -> AppTest:
    return visit("experiments", show="Padded batch", **parameters)


def panels(app: AppTest, tokens: int) -> list[np.ndarray]:
    """The cells of each panel, picture by picture; a masked cell is empty."""
    drawn = [json.loads(one.proto.spec)["data"][-1]["z"] for one in app.get("plotly_chart")]
    cells = [numbers(one) for one in drawn]
    step = tokens + 1
    return [one[:, at : at + tokens] for one in cells for at in range(0, one.shape[1], step)]


def test_padding_times_look_ahead_is_the_combined_mask() -> None:
    app = opened(model="stories", text=TEXT, second_text=SECOND)
    choose(app, "Picture", "Masks")
    padding, look_ahead, combined = (np.nan_to_num(one) for one in panels(app, 6))
    assert np.array_equal(combined, padding * look_ahead)
    assert np.array_equal(look_ahead, np.tri(6))
    assert np.array_equal(padding, np.tile([1, 1, 1, 0, 0, 0], (6, 1)))
    assert "hides it already" in said(app)
    assert "3 tokens, marked “pad”" in said(app)
    for picture in app.get("plotly_chart"):
        axis = json.loads(picture.proto.spec)["layout"]["xaxis"]
        assert axis["ticktext"][:6] == ["Tom", "·Hill", "·saw", "pad", "pad", "pad"]
        assert axis["ticktext"][6:12] == axis["ticktext"][:6]


def test_the_weights_are_those_of_the_batch_with_the_mask_and_without() -> None:
    app = opened(model="minilm", text=TEXT, second_text=SECOND, place="encoder.2.self", head="4")
    _, short = padded_batch(own("minilm"), TEXT, SECOND)
    masked, free = panels(app, len(short.tokens))
    assert free == pytest.approx(short.open["encoder.2.self"].weights(4), abs=1e-6)
    assert f"{short.taken('encoder.2.self', 4).mean():.2f} of a token's weight" in said(app)
    assert masked[:, : short.count] == pytest.approx(
        short.masked["encoder.2.self"].weights(4)[:, : short.count], abs=1e-6
    )
    assert np.isnan(masked[:, short.count :]).all()
    choose(app, "Picture", "Masks")
    (padding,) = panels(app, len(short.tokens))
    assert np.array_equal(np.isnan(padding), np.isnan(masked))


@pytest.mark.slow
@cases("model", sorted(models))
def test_each_model_shows_a_batch_or_says_why_not(model) -> None:
    app = opened(model=model, text=sentence(own(model)))
    refused = SHAPES[model] == "encoder-decoder"
    assert (f"{model} reads a" in said(app)) == refused
    assert bool(app.get("plotly_chart")) != refused
    for text in ("", "qqq zzz", "word " * 60):
        assert not opened(model=model, text=sentence(own(model)), second_text=text).exception
