"""Points of attention, measured in the laboratory: drawn for each model, true to their seed."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.loading.registry import models
from tests.model.tiny import sentence
from tests.pages.laboratory import assert_sound, intervention, linked
from tests.pages.reading import numbers, said, tables, traces
from viz.state.engine import engine

POINTS = ("Why √dₖ", "Gradient through softmax", "Two routes to a mask", "Which mask value")
DISTANCES = "Windows and distances"
TEXT = "Tom Hill saw a red ball"


def points_page() -> None:
    from viz.shell import page
    from viz.shell.panel import draw_view
    from viz.views.laboratory.experiments import measured_points

    page.open_page("pages/laboratory.py")
    draw_view(measured_points, page.look(changed=True))


@pytest.mark.slow
def test_every_measured_point_is_traces(subtests: pytest.Subtests) -> None:
    for model in sorted(models):
        with subtests.test(model=model):
            loaded = engine().model(model, lambda *news: None)
            page = AppTest.from_function(points_page, default_timeout=120)
            app = linked({"model": model, "text": sentence(loaded)}, page)
            for point in POINTS:
                app.segmented_control(key="laboratory-point").set_value(point).run()
                assert_sound(app)
                assert app.get("plotly_chart") or app.dataframe
            assert_mask_values(app)
            app.segmented_control(key="laboratory-precision").set_value("float16").run()
            assert_sound(app)
            assert "masked_fill" in tables(app)[0]["as float16"].str.cat()


def assert_mask_values(app: AppTest) -> None:
    """The table of fills says what PyTorch gives, and no NaN."""
    frame = tables(app)[0]
    assert frame["mask value"].tolist() == ["−∞"] * 2 + ["−1e9"] * 2 + ["−1e20"] * 2 + ["0"] * 2
    largest, undefined = frame.iloc[:, 3], frame.iloc[:, 5]  # a masked key; every key masked
    assert largest.tolist()[:6] == ["0.0000"] * 6
    assert float(largest.iloc[-1]) > 0
    assert undefined.tolist()[:2] == ["0/0, undefined"] * 2


def test_sampled_points_answer_to_their_seed_and_their_scores() -> None:
    app = linked({"text": TEXT}, AppTest.from_function(points_page, default_timeout=120))
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


def test_windows_chunks_and_alibi_are_drawn_for_the_sentence_and_a_window_can_be_run() -> None:
    app = linked({"text": TEXT}, AppTest.from_function(points_page, default_timeout=120))
    app.segmented_control(key="laboratory-point").set_value(DISTANCES).run()
    tokens = len(engine().model("stories", lambda *news: None).tokens(TEXT))
    for kind in ("Chunks", "ALiBi", "Window"):
        app.segmented_control(key="laboratory-distances").set_value(kind).run()
        assert_sound(app)
        added, weights = both(app)
        assert added.shape == weights.shape == (tokens, tokens)
        np.testing.assert_allclose(np.nansum(weights, 1), 1, atol=1e-5)
        if kind == "ALiBi":
            assert added[3, 1] == 2 * added[3, 2] < 0
    app.slider[0].set_value(2).run()
    assert (np.isfinite(both(app)[0]).sum(1) <= 2).all()
    app.button(key="laboratory-window-run").click().run()
    assert_sound(app)
    assert intervention(app).window == 2


def both(app: AppTest) -> list[np.ndarray]:
    """The two pictures beside each other."""
    specs = [json.loads(picture.proto.spec) for picture in app.get("plotly_chart")]
    return [numbers(spec["data"][-1]["z"]) for spec in specs]
