"""Labels of a picture whose margins are counted in letters: none is cut off, none lies on another thing."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.legible import STILL, WIDTHS

pytestmark = pytest.mark.walk

LONG = "An unaccountable internationalisation <b>& more #1 of naïveté, 猫 and сад"
MISPLACED = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
    const box = (one) => one.getBoundingClientRect();
    const room = box(plot.querySelector('.main-svg')), cells = box(plot.querySelector('.nsewdrag'));
    const besideCells = (label) => box(label).right <= cells.left + 1 && box(label).left >= room.left - 1;
    const aboveCells = (label) => box(label).bottom <= cells.top + 3 && box(label).top >= room.top - 1;
    const [above, beside] = ['.xtitle', '.ytitle'].map((one) => plot.querySelector(one)); // not each has both
    const apart = {
        xtick: (label) => aboveCells(label) && !(above && box(label).top < box(above).bottom),
        ytick: (label) => besideCells(label) && !(beside && box(label).left < box(beside).right),
    };
    return Object.entries(apart).flatMap(([axis, fits]) => {
        const labels = [...plot.querySelectorAll(`.${axis} text`)];
        const shown = labels.filter(label => box(label).width); // in a narrow picture not all of them
        if (labels.length && !shown.length) return [`no ${axis} is shown`];
        return shown.filter(label => !fits(label)).map(label => label.textContent);
    });
})"""

# Of each picture with square cells: a cell's width and height, and what is free below its cells, in pixels.
SQUARES = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(({ _fullLayout }) => {
    const { xaxis, yaxis, _size } = _fullLayout;
    const cell = ({ range, _length }) => _length / Math.abs(range[1] - range[0]);
    return yaxis.scaleratio ? [[cell(xaxis), cell(yaxis), _size.h - yaxis._length]] : [];
})"""


@pytest.mark.parametrize("path", ["/layer_norm", "/all_heads", "/positions"])
def test_every_label_of_a_heatmap_has_its_room(open_page: Callable[..., Page], path: str) -> None:
    page = open_page(path, text=LONG)
    page.locator(".js-plotly-plot .ytick text").first.wait_for()
    for size in WIDTHS.values():
        page.set_viewport_size(size)
        page.evaluate(STILL)
        assert page.evaluate(MISPLACED) == []
        for across, down, free in page.evaluate(SQUARES):
            assert across == pytest.approx(down, abs=0.1)
            assert free == pytest.approx(0, abs=2)
