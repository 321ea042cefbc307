"""The explorer can be read at every width: no label over another, none cut off, nothing empty below it."""

from dataclasses import replace

import pytest
from playwright.sync_api import Page

from tests.browser.explorer.stage import STAGES, Stage
from tests.legible import faults
from tests.viz.explorer.records import record
from viz.explorer import Selection

TOKENS = ["The", "·unaccountable", "·cat", ".", "·internationally", "·sat"]
WIDTHS = (1100, 760, 362)
# What is written on a canvas as letters of an SVG in its place, so that the same look finds them.
OVER_THE_CANVAS = """() => {
    const letters = window.letters = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const { a, b, c, d, e, f } = this.getTransform(), density = devicePixelRatio;
        const matrix = [a, b, c, d, e, f].map((part) => part / density);
        letters.push({ canvas: this.canvas, text, x, y, matrix, font: this.font,
                       anchor: { left: "start", center: "middle", right: "end" }[this.textAlign] });
        write.call(this, text, x, y);
    };
}"""
AS_TEXT = """() => {
    const figure = document.querySelector("#place").shadowRoot.querySelector(".figure");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", figure.clientWidth);
    svg.setAttribute("height", figure.clientHeight);
    svg.style.overflow = "hidden";
    const last = window.letters.at(-1)?.canvas;
    for (const { canvas, text, x, y, matrix, font, anchor } of window.letters) {
        if (canvas !== last) continue;
        const made = svg.appendChild(document.createElementNS(svg.namespaceURI, "text"));
        const placed = { x, y, transform: `matrix(${matrix})`, "text-anchor": anchor };
        const drawn = { "dominant-baseline": "middle", style: `font:${font}` };
        Object.entries({ ...placed, ...drawn }).forEach((one) => made.setAttribute(...one));
        made.textContent = text;
    }
    figure.append(svg);
    return svg.childElementCount;
}"""


def tokens(count: int) -> list[str]:
    return [TOKENS[at % len(TOKENS)] for at in range(count)]


@pytest.mark.walk
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [6, 11, 33])
def test_every_stage_can_be_read(stage: Stage, width: int, count: int) -> None:
    stage.page.set_viewport_size({"width": width, "height": 900})
    attention = record(count)
    changed = replace(attention, scale=3.0)
    for baseline in (None, attention):
        stage.send(changed, queries=tokens(count), keys=tokens(count), baseline=baseline)
        for name in STAGES:
            stage.part(f"stage-{name}").click()
            stage.ready()
            assert faults(stage.page) == [], (name, baseline is not None)


def test_small_numbers_do_not_run_into_each_other(stage: Stage) -> None:
    """In ten cells of a row there is room for 0.25, and none for 2.2e−31."""
    attention = record(10)
    query, key, value = attention.vectors
    steep = replace(attention, vectors=(query * 6, key, value), steps={})
    for width in WIDTHS:
        stage.page.set_viewport_size({"width": width, "height": 900})
        stage.send(steep, Selection(0, "weights", 9, 1))
        written = stage.root.locator(".plotly .heatmap-label text").all_text_contents()
        assert width < 1100 or any("<" in number for number in written), written
        assert faults(stage.page) == []


@pytest.mark.walk
@pytest.mark.parametrize("width", WIDTHS)
def test_letters_on_a_canvas_can_be_read(stage: Stage, width: int) -> None:
    stage.page.set_viewport_size({"width": width, "height": 900})
    stage.page.evaluate(OVER_THE_CANVAS)
    stage.send(record(80), queries=tokens(80), keys=tokens(80))
    stage.expect_cell(renderer="canvas")
    assert stage.page.evaluate(AS_TEXT) > 8
    assert faults(stage.page) == []


@pytest.mark.walk
@pytest.mark.parametrize("width", WIDTHS)
def test_a_saved_picture_has_its_whole_title(stage: Stage, width: int) -> None:
    stage.page.set_viewport_size({"width": width, "height": 900})
    stage.send(record(6))
    stage.part("more").click()
    with stage.page.expect_download() as download:
        stage.part("save-svg").click()
    drawn = shown(stage.page, download.value.path().read_text("utf-8"))
    assert "the future, masked" in " ".join(drawn["title"])
    assert drawn["beyond"] == []
    assert drawn["over the cells"] == []


def shown(page: Page, svg: str) -> dict[str, list[str]]:
    """The title's lines of a saved picture; what reaches beyond it, and what of the title over its cells."""
    found: dict[str, list[str]] = page.evaluate(
        """svg => {
            const place = document.body.appendChild(document.createElement("div"));
            place.innerHTML = svg;
            const box = (one) => one.getBoundingClientRect();
            const room = box(place.querySelector("svg"));
            const cells = box(place.querySelector(".heatmaplayer image")).top;
            const texts = [...place.querySelectorAll("text")].filter((one) => one.textContent);
            const title = texts.find((one) => one.closest(".g-gtitle"));
            const lines = [...title.querySelectorAll("tspan"), ...(title.childElementCount ? [] : [title])];
            const aside = (one) => box(one).right > room.right || box(one).left < room.left;
            const beyond = (one) => aside(one) || box(one).top < room.top;
            const told = (some) => some.map((one) => one.textContent);
            const found = { title: told(lines), beyond: told(texts.filter(beyond)),
                            "over the cells": told(lines.filter((one) => box(one).bottom > cells)) };
            place.remove();
            return found;
        }""",
        svg,
    )
    return found
