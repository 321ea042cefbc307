"""The numbers of a run before and after a change, as bars of HTML."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.run_comparison import losses
from model.loading.registry import load_model
from model.nn.intervention import Intervention
from tests.hostile.laws import Tags
from tests.pages.reading import visit

ROW = re.compile(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td></tr>')
BAR = re.compile(r'<span title="([\d.]+)"><i style="--share:([\d.]+);[^"]*"></i>([\d.]+)</span>')


def bars(app: AppTest) -> list[str]:
    return [one.proto.body for one in app.get("html") if "paired-bars" in one.proto.body]


def test_the_bars_are_the_losses_and_the_shares_of_both_runs() -> None:
    text = "Tom Hill saw a ball"
    model = load_model("house-gpt")
    runs = [model.trace(text), model.trace(text, intervention=Intervention(mask="none"))]
    leaks, expected = bars(visit("home", model="house-gpt", text=text, mask="none"))
    rows = ROW.findall(leaks)
    assert [label for label, _ in rows] == ["·Hill", "·saw", "·a", "·ball"]
    wanted = [losses(run) for run in runs]
    widest = max(loss.max() for loss in wanted)
    for at, (_, cells) in enumerate(rows):
        for (whole, share, short), loss in zip(BAR.findall(cells), wanted, strict=True):
            assert float(whole) == pytest.approx(loss[at], abs=6e-4)
            assert float(short) == pytest.approx(loss[at], abs=6e-4)
            assert float(share) == pytest.approx(loss[at] / widest, abs=1e-3)
    for _, cells in ROW.findall(expected):  # a bar as wide as its place is a probability of 1
        for whole, share, _ in BAR.findall(cells):
            assert float(share) == pytest.approx(float(whole), abs=6e-4)


def test_a_token_is_text_whatever_stands_in_it() -> None:
    def page() -> None:
        from viz.elements.plot import paired_bars

        paired_bars(
            ["<script>x</script>", "&lt;b&gt;"], [1.0, 0.0], [0.5, 0.0], unit="<i>", decimals=4
        )

    app = AppTest.from_function(page).run()
    assert not app.exception
    (drawn,) = bars(app)
    assert Tags(drawn).tags == {
        "style",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
        "i",
    }
    assert "&amp;lt;b" in drawn
