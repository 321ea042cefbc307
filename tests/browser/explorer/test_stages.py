"""Cap, bias, window and sink are stages of their own: pictures, formulas, readout, beats, files. So is what
stands around the heads."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from model import Trace
from model.analysis.stream.around_heads import AroundHeads
from model.trace.records import NormRecord
from tests.browser.explorer.stage import Stage, middle
from tests.model import tiny
from tests.viz.explorer.records import record
from tests.viz.explorer.records_of_today import LATER
from viz.explorer import Selection

HEAD, QUERY, KEY = 1, 3, 2
NAMES = [
    *("query", "key", "value", "scores", "scaled", "capped", "biased", "masked", "weights"),
    "output",
]


def strip(stage: Stage) -> list[str]:
    radios = stage.root.locator(".strip [role=radio]").all()
    return [str(radio.get_attribute("data-testid")).removeprefix("stage-") for radio in radios]


def test_cap_bias_and_sink_have_pictures_and_filled_formulas(stage: Stage, tmp_path: Path) -> None:
    attention = LATER["all"]
    stage.send(attention, Selection(HEAD, "capped", QUERY, KEY))
    assert strip(stage) == NAMES
    formula = stage.part("numbers-formula").locator("annotation")
    for name in ("capped", "biased"):
        stage.part(f"stage-{name}").click()
        own = getattr(attention, name)(HEAD)
        expect(formula).to_contain_text(f"{own[QUERY, KEY]:.4f}")
        np.testing.assert_allclose(stage.drawn(), own, atol=1e-5)
        stage.part("stage-scores").click()
    stage.part("stage-weights").click()
    drawn, taken = stage.drawn(), attention.sink_weights(HEAD)
    assert drawn.shape == (6, 7)
    np.testing.assert_allclose(drawn[:, -1], taken, atol=1e-6)
    np.testing.assert_allclose(np.nansum(drawn, axis=1), np.ones(6), atol=1e-5)
    expect(formula).to_contain_text(f"{taken[QUERY]:.4f}")
    expect(stage.root.locator("[data-mark=sink]")).to_have_count(1)
    expect(stage.part("readout")).to_contain_text(
        f"capped {attention.capped(HEAD)[QUERY, KEY]:.4f}".replace("-", "\u2212")
    )
    expect(stage.part("readout")).to_contain_text(f"sink {taken[QUERY]:.4f}")
    expect(stage.part("sentence")).to_contain_text(f"takes {taken[QUERY]:.4f} of this row")
    expect(stage.part("sink")).to_contain_text(f"{taken[QUERY]:.4f}")
    stage.part("figure").hover(position=middle(stage, 1, 6, 6, 7))
    expect(stage.part("tooltip")).to_contain_text("sink of this head")
    stage.part("figure").click(position=middle(stage, 1, 6, 6, 7))
    stage.expect_cell(query=1, key=KEY)  # the sink is no key
    with stage.page.expect_download() as saved:
        stage.part("save-csv").click()
    file = tmp_path / "weights.csv"
    saved.value.save_as(file)
    rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    assert rows[0][-1] == "sink"
    np.testing.assert_allclose([float(row[-1]) for row in rows[1:]], taken, atol=1e-6)
    stage.part("stage-masked").click()
    expect(stage.part("look")).to_contain_text("A sliding window of 2")
    stage.part("chip-query-5").click()
    stage.part("figure").press("ArrowLeft")
    expect(stage.part("details")).to_contain_text("lies outside of the window of 2")


def test_cap_and_bias_have_beats_of_their_own(stage: Stage) -> None:
    attention = LATER["all"]
    stage.send(attention, Selection(HEAD, "weights", QUERY, KEY))
    stage.part("open-play").click()
    steps = {3: attention.capped, 4: attention.biased, 7: attention.weights}
    for number, matrix in steps.items():
        stage.part("scrub").fill(str(number))
        expect(stage.part("beat")).to_contain_text(f"{number} of 8")
        texts = stage.part("beat-rows").locator(".beatnumber").all_text_contents()
        expected = matrix(HEAD)[QUERY]
        of_keys = texts[: len(expected)]  # the sink has a row of its own below them
        shown = [float(text.replace("\u2212", "-")) for text in of_keys]
        np.testing.assert_allclose(shown, expected, atol=6e-5)
    taken = attention.sink_weights(HEAD)[QUERY]
    expect(stage.part("beat-says")).to_contain_text(f"with the sink's {taken:.4f} they sum to 1")


def test_a_run_without_its_cap_and_sink_is_compared_with_the_one_that_has_them(
    stage: Stage,
) -> None:
    whole = LATER["all"]
    bare = replace(whole, cap=None, bias=None, sinks=None)
    stage.send(bare, Selection(HEAD, "weights", QUERY, KEY), baseline=whole)
    assert strip(stage) == NAMES
    np.testing.assert_allclose(stage.drawn(0)[:, -1], whole.sink_weights(HEAD), atol=1e-6)
    np.testing.assert_allclose(stage.drawn(1)[:, -1], np.zeros(6))
    stage.part("stage-capped").click()
    expect(stage.part("formula")).to_contain_text("not capped")
    np.testing.assert_allclose(stage.drawn(1), bare.scaled(HEAD), atol=1e-5)
    stage.send(record(6), revision=1)
    assert strip(stage) == [name for name in NAMES if name not in ("capped", "biased")]


def test_what_stands_around_the_heads_is_drawn_and_fetched_where_it_is_large(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.loaded("house-gpt")
    trace = model.trace("Tom Hill saw a red ball")
    attention = trace.attention[1]
    found, tokens = AroundHeads(model, trace, attention), [token.text for token in trace.tokens]
    sent: dict[str, Any] = {"queries": tokens, "keys": tokens, "around": [found]}
    monkeypatch.setattr("viz.explorer.message.LIGHT_AROUND", 0)
    stage.send(attention, Selection(1, "weights", QUERY, KEY), **sent)
    expect(stage.part("stage-written")).to_have_attribute("title", "opens when chosen")
    stage.expect_report_at_once("stage-norm")
    expect(stage.part("notice")).to_have_text("Fetching the vectors of this stage …")
    monkeypatch.undo()
    asked = Selection(1, "norm", QUERY, KEY)
    stage.send(attention, Selection(1, "weights", QUERY, KEY), asked=asked, **sent)
    norm = attention_norm(trace)
    for panel, values in enumerate((norm.input, norm.output)):
        np.testing.assert_allclose(stage.drawn(panel), values, atol=1e-4)
    expect(stage.part("stage-written")).to_have_attribute("title", "")
    expect(stage.part("legend")).to_contain_text("before")
    formula = stage.part("numbers-formula").locator("annotation")
    expect(stage.part("stage-positions")).to_have_text("stream")
    for name, matrix in {
        "positions": trace.residual["decoder"][2],
        "concatenated": np.concatenate(attention.output, axis=-1),
        "written": trace.residual["decoder"][3] - trace.residual["decoder"][2],
    }.items():
        stage.part(f"stage-{name}").click()
        stage.expect_cell(stage=name)
        np.testing.assert_allclose(stage.drawn(), matrix, atol=1e-4)
        expect(formula).to_contain_text(f"{matrix[QUERY, 0]:.4f}")
    expect(stage.part("details")).to_contain_text("The stream received")
    expect(stage.part("details").locator(".term:not(.head)")).to_have_count(attention.heads)


def attention_norm(trace: Trace) -> NormRecord:
    return next(norm for norm in trace.norms if norm.name == "decoder.1.self.norm")
