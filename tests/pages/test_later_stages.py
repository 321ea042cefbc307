"""Pages on a model with every stage of attention: caps, biases, sinks and windows."""

import re

import numpy as np

from tests.pages.reading import control, drawn, own, said, visit

TEXT = "the cat " * 8


def test_means_count_what_sinks_take_and_hatch_what_no_window_lets_through() -> None:
    """Layers with a window of 8 and without one, each head with a sink."""
    app = visit("all_heads", model="all-stages", text=TEXT, show="Averages and rollout")
    length = len(own("all-stages").tokens(TEXT))
    assert length > 8
    earlier, near = np.tri(length, dtype=bool), ~np.tri(length, k=-8, dtype=bool)
    hatched = {"Mean of all heads": ~earlier, "Mean of a layer's heads": ~(earlier & near)}
    for picture, expected in hatched.items():
        control(app, "Picture").set_value(picture).run()
        if picture != "Mean of all heads":
            control(app, "Layer").set_value(0).run()
        np.testing.assert_array_equal(np.isnan(drawn(app, at=-1)), expected)
        assert re.search(r"sinks take [^.]*0\.\d\d\)", said(app))
        off = re.search(r"sums to 1, to within ([\de−-]+)", said(app))
        assert off
        assert float(off[1].replace("−", "-")) < 1e-5
    control(app, "Picture").set_value("Rollout").run()
    for layer, expected in ((0, ~(earlier & near)), (3, ~earlier)):
        control(app, "Up to and including layer").set_value(layer).run()
        np.testing.assert_array_equal(np.isnan(drawn(app, at=-1)), expected)
    assert "sinks take" not in said(app)
