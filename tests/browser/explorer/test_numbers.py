"""The numbers beside the explorer's picture: formula, check, table, effect of a change, files."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from model.trace.records import Attention
from tests.browser.explorer.equations import claims, written
from tests.browser.explorer.stage import STAGES, Stage, expected, middle
from tests.viz.explorer.records import labels, record, staged
from viz.explorer import Selection, payload
from viz.explorer.packing import packed

HOSTILE = [
    *("<img src=x onerror=window.hacked=1>", "</script>", "<b>b</b>", "&lt;", "#000001", "$x$"),
    *("\u202eevil", "\n", "", " ", "\ud800", "<a href='https://example.org'>a</a>"),
]


def test_a_token_is_never_markup(stage: Stage) -> None:
    size = len(HOSTILE)
    stage.send(record(size), queries=HOSTILE, keys=HOSTILE)
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        stage.ready()
        stage.part("figure").hover(position=middle(stage, 0, 0, size, size))
    stage.part("table").locator("summary").click()
    assert stage.page.evaluate("window.hacked") is None
    for tag in ("img[src='x']", "a", "b"):
        assert stage.root.locator(tag).count() == 0
    shown = stage.root.locator(".plotly text").all_text_contents()
    assert "<b>b</b>" in shown
    assert "&lt;" in shown
    assert "#\u2060000001" in shown


def numbers(cells: Locator) -> list[float]:
    """What stands in them, in sight or not: rows that nobody sees have no inner text."""
    return [float(text.replace("\u2212", "-")) for text in cells.all_text_contents()]


def test_the_numbers_that_the_softmax_reads_are_named_after_their_step(stage: Stage) -> None:
    """An encoder's row is not masked."""
    both = record(6, kind="self")
    for attention, step in ((record(6), "masked"), (both, "scaled"), (staged(both), "biased")):
        stage.send(attention, Selection(1, "weights", 4, 2))
        heads = stage.part("details").locator(".term.head").first.locator("> *")
        assert heads.all_text_contents()[1] == step


def test_the_filled_formula_holds_the_cells_own_numbers(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(1, "scores", 4, 2))
    products = attention.query[1][4] * attention.key[1][2]
    formula = stage.part("numbers-formula").locator("annotation")
    expect(formula).to_contain_text(f"{attention.scores(1)[4, 2]:.4f}")
    expect(formula).to_contain_text(f"{products[np.abs(products).argmax()]:.4f}")
    terms = stage.part("details").locator(".term:not(.head)")
    expect(terms).to_have_count(8)
    shown = numbers(terms.locator(":nth-child(5)"))
    assert sorted(map(abs, shown), reverse=True) == list(map(abs, shown))
    np.testing.assert_allclose(sorted(shown), sorted(products), atol=6e-5)
    stage.part("order-index").click()
    stage.ready()
    np.testing.assert_allclose(numbers(terms.locator(":nth-child(5)")), products, atol=6e-5)
    stage.part("stage-weights").click()
    expect(formula).to_contain_text(f"{attention.weights(1)[4, 2]:.4f}")
    stage.part("stage-output").click()
    expect(formula).to_contain_text(f"{attention.context(1)[4, 0]:.4f}")


def test_a_long_run_is_checked_after_its_picture(stage: Stage) -> None:
    stage.send(record(6), check=None, run="long")
    expect(stage.part("check")).to_contain_text("the whole run is being checked")
    stage.page.wait_for_function("window.checks.length === 1")
    assert stage.page.evaluate("window.checks") == ["long"]
    stage.send(record(6), check=5e-7, run="long")
    expect(stage.part("check")).to_contain_text(
        "over the whole run the largest difference is 5e\u22127"
    )
    stage.part("head-1").click()
    expect(stage.part("check")).to_contain_text("H1, equals the model's own output")
    expect(stage.part("check")).to_contain_text("5e\u22127")
    stage.send(record(6, seed=1), check=2e-7)
    expect(stage.part("check")).to_contain_text("2e\u22127")


def test_the_check_tells_a_true_output_from_a_wrong_one(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    expect(stage.part("check")).to_contain_text("✓")
    expect(stage.part("check")).to_contain_text("3e\u22127")
    wrong = attention.output.copy()
    wrong[0, 2, 3] += 0.02
    stage.send(replace(attention, output=wrong))
    expect(stage.part("check")).to_contain_text("✗")
    expect(stage.part("check")).to_contain_text("2e\u22122")


def test_the_table_has_the_numbers_under_their_tokens(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(0, "scores", 0, 0))
    assert stage.part("table").locator("td").count() == 0
    stage.part("table").locator("summary").click()
    expect(stage.part("table").locator("tbody td")).to_have_count(36)
    shown = np.array(numbers(stage.part("table").locator("tbody td"))).reshape(6, 6)
    np.testing.assert_allclose(shown, attention.scores(0), atol=6e-5)
    expect(stage.part("table").locator("thead th").nth(4)).to_have_text("4 ·cat")


def test_without_katex_the_formula_is_plain_text(
    mounted: Callable[[Page], Stage], page_without: Callable[[str], Page]
) -> None:
    stage = mounted(page_without("katex.min.js"))
    stage.send(record(6), Selection(0, "scores", 4, 2))
    expect(stage.part("formula")).to_have_text("score_ij = q_i · k_j = sum over c of q_ic k_jc")
    expect(stage.part("numbers-formula")).to_contain_text("query 4")


def test_katexs_fonts_are_known_to_the_document_once(stage: Stage) -> None:
    stage.send(record(6))
    expect(stage.part("formula").locator(".katex")).to_be_visible()
    faces = stage.page.evaluate(
        "[...document.fonts].map((face) => face.family + face.weight + face.style)"
    )
    assert len(faces) == len(set(faces)) > 10
    assert (
        stage.page.evaluate("document.fonts.load('16px KaTeX_Main').then((faces) => faces.length)")
        > 0
    )


def test_the_table_of_a_long_text_is_a_window_around_the_cell(stage: Stage) -> None:
    stage.send(record(100, heads=1), Selection(0, "scores", 99, 50))
    stage.part("table").locator("summary").click()
    expect(stage.part("table").locator("tbody tr")).to_have_count(64)
    expect(stage.part("table").locator("caption")).to_contain_text("rows 36–99, columns 18–81")


def test_a_wrong_output_shows_in_its_sums_before_the_values_are_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz.explorer.message.LIGHT", 0)
    attention = record(6)
    wrong = attention.output.copy()
    wrong[0, 2, 3] += 0.02
    stage.send(replace(attention, output=wrong))
    expect(stage.part("check")).to_contain_text("✗")


def changed_and_baseline() -> tuple[Attention, Attention]:
    baseline = record(6)
    return replace(baseline, scale=1.0, look_ahead=False, own_mask=None), baseline


def test_baseline_changed_and_difference_lie_side_by_side(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, Selection(0, "weights", 4, 2), baseline=baseline)
    panels = [stage.drawn(n) for n in range(3)]
    np.testing.assert_allclose(panels[0], expected(baseline, "weights", 0), atol=1e-6)
    np.testing.assert_allclose(panels[1], changed.weights(0), atol=1e-6)
    np.testing.assert_allclose(panels[2], changed.weights(0) - baseline.weights(0), atol=1e-6)
    for words in ("baseline: unchanged run", "changed run", "changed − baseline"):
        expect(stage.root.locator(".caption", has_text=words).first).to_be_visible()
    expect(stage.part("panel")).to_contain_text("The changed run, number by number")


def test_the_effect_is_given_before_and_after_for_the_row_and_on_average(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, Selection(0, "weights", 4, 2), baseline=baseline)
    rows = stage.part("effect").locator("tbody tr")

    def entropy(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        full = weights.astype(np.float64)
        return -(full * np.log(np.where(full > 0, full, 1))).sum(-1)

    for row, measure in {
        0: lambda run: run.weights(0)[4, 2],
        1: lambda run: entropy(run.weights(0))[4],
        2: lambda run: run.weights(0)[4].max(),
        3: lambda run: entropy(run.weights(0)).mean(),
        4: lambda run: run.weights(0).max(-1).mean(),
    }.items():
        before, after = measure(baseline), measure(changed)
        shown = numbers(rows.nth(row).locator("td"))
        np.testing.assert_allclose(shown, [before, after, after - before], atol=6e-5)


def test_a_cell_that_one_run_masks_has_no_difference_of_masked_scores(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, Selection(0, "masked", 1, 4), baseline=baseline)
    assert np.isnan(stage.drawn(2)[1, 4])
    assert np.isfinite(stage.drawn(2)[4, 1])
    stage.part("figure").hover(position=middle(stage, 1, 4, 6, 6))
    expect(stage.part("tooltip")).to_contain_text("baseline: masked")


def test_equal_runs_are_said_to_be_equal(stage: Stage) -> None:
    baseline = record(6)
    stage.send(baseline, Selection(0, "scores", 1, 4), baseline=baseline)
    expect(stage.part("legend")).to_contain_text("both runs are equal here")


def test_without_a_baseline_there_is_one_picture_again(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, baseline=baseline)
    stage.send(baseline)
    assert stage.root.locator(".figure > .plotly").evaluate("plot => plot.data.length") == 1
    expect(stage.part("effect")).to_be_hidden()


def test_the_picture_and_its_numbers_can_be_saved(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(1, "weights", 3, 1))
    files = {}
    for ending in ("png", "svg", "pdf", "csv"):
        with stage.page.expect_download() as download:
            stage.part(f"save-{ending}").click()
        assert download.value.suggested_filename == f"attention-L2H1-weights.{ending}"
        files[ending] = download.value.path().read_bytes()
    assert files["png"].startswith(b"\x89PNG")
    assert b"Weights of L2H1" in files["svg"]
    assert files["pdf"].startswith(b"%PDF-")
    assert b"/EmbeddedFile" not in files["pdf"]  # of no run that can be made again
    lines = files["csv"].decode().splitlines()
    assert lines[0].startswith('"query \\ key","0 The","1 ·cat"')
    last = [float(cell) for cell in lines[6].split(",")[1:]]
    np.testing.assert_allclose(last, attention.weights(1)[5], rtol=1e-6)
    assert lines[1].split(",")[2:] == [""] * 5


def test_the_message_is_as_small_as_its_numbers() -> None:
    attention = record(64, heads=12, width=64)
    message = payload(attention, queries=labels(64), keys=labels(64), head=0, check=0.0)
    numbers = 4 * 12 * 64 * 64 * 4
    assert len(packed(message)) < numbers + 40_000
    assert math.isclose(attention.weights(0).sum(), 64, rel_tol=1e-4)


def test_an_equals_sign_stands_where_the_printed_digits_give_the_result(stage: Stage) -> None:
    found = []
    for attention in (record(6), record(6, width=32), record(6, scale=0.3), record(6, scale=1.0)):
        for row, column in ((5, 1), (3, 3), (1, 4)):
            stage.send(attention, Selection(1, "query", row, column))
            for name in STAGES:
                stage.part(f"stage-{name}").click()
                stage.expect_cell(stage=name)
                found += claims(written(stage))
    assert [line for line, sign, held in found if (sign == "=") != held] == []
    assert len(found) > 90
    assert {sign for _, sign, _ in found} == {"=", r"\approx"}
