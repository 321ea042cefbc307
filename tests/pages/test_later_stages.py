"""Pages on a model with every stage of attention: caps, biases, sinks and windows."""

import json
import re

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.pages.reading import control, numbers, own, said, visit

TEXT = "the cat " * 8


def mean_of(app: AppTest) -> np.ndarray:
    """The map on the right, row by row."""
    data = json.loads(app.get("plotly_chart")[-1].proto.spec)["data"]
    return numbers([one["z"] for one in data if one["type"] == "heatmap"][-1])


def test_means_count_what_sinks_take_and_hatch_what_no_window_lets_through() -> None:
    """Layers with a window of 8 and without one, each head with a sink."""
    app = visit("compare", model="all-stages", text=TEXT, show="Averages")
    length = len(own("all-stages").tokens(TEXT))
    assert length > 8
    earlier, near = np.tri(length, dtype=bool), ~np.tri(length, k=-8, dtype=bool)
    hatched = {"Mean of all heads": ~earlier, "Mean of a layer": ~(earlier & near)}
    for picture, expected in hatched.items():
        control(app, "On the right").select(picture).run()
        if picture != "Mean of all heads":
            control(app, "Layer").set_value(0).run()
        np.testing.assert_array_equal(np.isnan(mean_of(app)), expected)
        assert re.search(r"sinks take [^.]*0\.\d\d\)", said(app))
        off = re.search(r"sums to 1, to within ([\de−-]+)", said(app))
        assert off
        assert float(off[1].replace("−", "-")) < 1e-5
    control(app, "On the right").select("Rollout").run()
    for layer, expected in ((0, ~(earlier & near)), (3, ~earlier)):
        control(app, "Up to and including layer").set_value(layer).run()
        np.testing.assert_array_equal(np.isnan(mean_of(app)), expected)
    assert "sinks take" not in said(app)
