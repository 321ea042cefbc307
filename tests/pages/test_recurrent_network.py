"""The recurrent network on the training page: its words and picture are those of the reader's own list."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.training.recurrent import compare
from tests.pages.reading import ODD_TEXTS, said, traces, visit
from viz.notation.theme import KEY
from viz.views.training.choice import LIST

pytestmark = pytest.mark.slow


def curves(app: AppTest) -> dict[str, dict]:
    """The named lines of the picture."""
    return {line["name"]: line for line in traces(app) if "name" in line}


def test_the_picture_shows_the_path_and_the_gradients_of_the_readers_own_list() -> None:
    app = visit("experiments", show="GRU")
    found = compare(LIST)
    for each in found.both:
        line = curves(app)[each.network.name]
        np.testing.assert_allclose(line["y"], each.gradient, rtol=1e-5)
    assert all(part in said(app) for part in ("GRU takes 19 ", ", attention 1."))
    (slider,) = app.slider
    slider.set_range(4, 7).run()
    assert "GRU takes 3 " in said(app)
    (rows,) = (frame.value for frame in app.table)
    measured = rows.to_numpy().tolist()
    assert ["9 of 9", "0 of 9"] in measured  # right
    assert ["1", "3"] in measured  # steps between the two
    assert all(part in said(app) for part in (" predicts 9 of 9 ", "GRU 0 of 9"))
    assert "token 10, k (attention)" in said(app)  # from 0
    assert KEY not in {line["line"]["color"] for line in curves(app).values()}


def test_no_list_breaks_the_recurrent_network() -> None:
    app = visit("experiments", show="GRU")
    for text in ("", "a", "a a", " ".join("ab" * 40), *ODD_TEXTS):
        app.text_input(key="training-recurrent-text").set_value(text[:500]).run()
        assert not app.exception
        assert app.get("plotly_chart") or said(app)
        assert "nan" not in said(app).casefold()
