"""Points of attention, measured in the laboratory: drawn for each model, true to their seed."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.loading.registry import models
from tests.model.tiny import sentence
from tests.pages.laboratory import assert_sound, linked
from tests.pages.reading import numbers, said, tables, traces
from viz.state.engine import engine

POINTS = ("Why √dₖ", "Gradient through softmax", "Two routes to a mask", "Which mask value")
TEXT = "Tom Hill saw a red ball"


def points_page() -> None:
    from viz.shell import page
    from viz.views.laboratory.experiments import measured_points

    page.open_page("pages/laboratory.py")
    measured_points(page.look(changed=True))


@pytest.mark.parametrize("model", sorted(models))
def test_every_measured_point_is_traces(model: str) -> None:
    loaded = engine().model(model, lambda *news: None)
    page = AppTest.from_function(points_page, default_timeout=60)
    app = linked({"model": model, "text": sentence(loaded)}, page)
    for point in POINTS:
        app.segmented_control(key="laboratory-point").set_value(point).run()
        assert_sound(app)
        assert app.get("plotly_chart") or app.dataframe
    assert_mask_values(app)
    app.segmented_control(key="laboratory-precision").set_value("float16").run()
    assert_sound(app)
    assert "masked_fill refuses it" in tables(app)[0]["as float16"].str.cat()


def assert_mask_values(app: AppTest) -> None:
    """The table of fills says what PyTorch gives, and no NaN."""
    frame = tables(app)[0]
    assert frame["mask value"].tolist() == ["−∞"] * 2 + ["−1e9"] * 2 + ["−1e20"] * 2 + ["0"] * 2
    assert frame["largest weight on a masked key"].tolist()[:6] == ["0.0000"] * 6
    assert float(frame["largest weight on a masked key"].iloc[-1]) > 0
    assert frame["a row with every key masked"].tolist()[:2] == ["0/0, undefined"] * 2


def test_sampled_points_answer_to_their_seed_and_their_scores() -> None:
    app = linked({"text": TEXT}, AppTest.from_function(points_page, default_timeout=60))
    first = numbers(traces(app)[-1]["y"])
    app.number_input(key="laboratory-draw").set_value(9).run()
    assert not np.array_equal(first, numbers(traces(app)[-1]["y"]))
    app.number_input(key="laboratory-draw").set_value(0).run()
    np.testing.assert_array_equal(first, numbers(traces(app)[-1]["y"]))
    app.segmented_control(key="laboratory-point").set_value(POINTS[1]).run()
    app.segmented_control(key="laboratory-gradient").set_value("One row").run()
    assert "0.1142, 0.8438, 0.0420" in said(app)
    for bad in ("a, b", "", "1e400", "nan"):
        app.text_input(key="laboratory-scores").set_value(bad).run()
        assert_sound(app)
        assert app.warning
