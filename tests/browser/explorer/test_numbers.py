"""What only a browser shows of the numbers beside the picture: no token is markup, fonts, files."""

import numpy as np
from playwright.sync_api import expect

from tests.browser.explorer.stage import STAGES, Stage, middle
from tests.viz.explorer.records import record
from viz.explorer import Selection
from viz.explorer.message import Hero

HOSTILE = [
    *("<img src=x onerror=window.hacked=1>", "</script>", "<b>b</b>", "&lt;", "#000001", "$x$"),
    *("\u202eevil", "\n", "", " ", "\ud800", "<a href='https://example.org'>a</a>"),
]


def test_a_token_is_never_markup(stage: Stage) -> None:
    size = len(HOSTILE)
    stage.send(record(size), queries=HOSTILE, keys=HOSTILE, hero=Hero("", detail="full"))
    stage.part("how").click()
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        stage.ready()
        stage.part("figure").hover(position=middle(stage, 0, 0, size, size))
    stage.part("more").click()
    stage.part("open-table").click()
    assert stage.page.evaluate("window.hacked") is None
    for tag in ("img[src='x']", "a", "b:text-is('b')"):
        assert stage.root.locator(tag).count() == 0
    shown = stage.root.locator(".plotly text").all_text_contents()
    assert "<b>b</b>" in shown
    assert "&lt;" in shown
    assert "#\u2060000001" in shown


def test_katexs_fonts_are_known_to_the_document_once(stage: Stage) -> None:
    stage.send(record(6))
    stage.part("how").click()
    expect(stage.part("formula").locator(".katex")).to_be_visible()
    faces = stage.page.evaluate(
        "[...document.fonts].map((face) => face.family + face.weight + face.style)"
    )
    assert len(faces) == len(set(faces)) > 10
    assert (
        stage.page.evaluate("document.fonts.load('16px KaTeX_Main').then((faces) => faces.length)")
        > 0
    )


def test_the_picture_and_its_numbers_can_be_saved(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(1, "weights", 3, 1))
    stage.part("more").click()
    files = {}
    for ending in ("png", "svg", "pdf", "csv"):
        with stage.page.expect_download() as download:
            stage.part(f"save-{ending}").click()
        assert download.value.suggested_filename == f"attention-L2H1-weights.{ending}"
        files[ending] = download.value.path().read_bytes()
    assert files["png"].startswith(b"\x89PNG")
    assert b"Weights of L2H1" in files["svg"]
    assert files["svg"].count("·saw".encode()) == 2  # its row and its column
    assert files["pdf"].startswith(b"%PDF-")
    assert b"/EmbeddedFile" not in files["pdf"]  # of no run that can be made again
    lines = files["csv"].decode().splitlines()
    assert lines[0].split(",")[1:3] == ['"0 The"', '"1 ·cat"']
    last = [float(cell) for cell in lines[6].split(",")[1:]]
    np.testing.assert_allclose(last, attention.weights(1)[5], rtol=1e-6)
    assert lines[1].split(",")[2:] == [""] * 5
