"""The code beside the formula: what a reader sees there, run, gives the number beside it."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from model.snippets import STYLES, code_of
from model.trace.records import Attention
from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import record
from viz.explorer import Selection

STAGES = ("scores", "scaled", "masked", "weights", "output")
HEAD, QUERY, KEY = 1, 4, 2


def given(attention: Attention) -> dict[str, Any]:
    """What the page says is given, from the record itself."""
    q, k, v = (torch.tensor(vectors) for vectors in attention.vectors)
    steps: dict[str, Any] = {
        name: torch.tensor(np.stack([getattr(attention, name)(h) for h in range(attention.heads)]))
        for name in ("scores", "scaled", "masked", "weights")
    }
    return steps | {"q": q, "k": k, "v": v, "torch": torch}


def number(text: str) -> float:
    return float(text.replace("\u2212", "-"))


def test_the_shown_lines_give_the_shown_number_and_the_script_is_the_one_that_is_tried(
    stage: Stage,
) -> None:
    attention = record(6)
    stage.send(attention, Selection(HEAD, "weights", QUERY, KEY))
    expect(stage.part("formula")).to_be_visible()
    stage.part("reading-code").click()
    expect(stage.part("formula")).to_be_hidden()
    code = code_of(attention)
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        for style in STYLES:
            stage.part(f"style-{style}").click()
            expect(stage.part(f"style-{style}")).to_have_attribute("aria-checked", "true")
            stage.ready()
            *lines, result = stage.part("code").locator(".lines code").all_text_contents()
            names = given(attention)
            exec("\n".join(lines), names)
            made, shown = float(eval(result, names)), stage.part("code-value").text_content()
            assert made == pytest.approx(number(shown or ""), abs=5.01e-5), (name, style)
            stage.part(
                "copy-script"
            ).click()  # no clipboard here: the script is shown, and selected
            own = code.script(name, style, head=HEAD, query=QUERY, key=KEY)
            expect(stage.part("script")).to_be_visible()
            assert stage.part("script").text_content() == own
    stage.part("style-torch").press("ArrowLeft")
    expect(stage.part("style-loops")).to_be_focused()
    stage.part("figure").press("ArrowUp")
    expect(stage.part("code")).to_contain_text(re.compile(rf"weights\[{HEAD}, {QUERY - 1}\]"))
    stage.part("stage-query").click()
    expect(stage.part("code")).to_have_text("There is no code for this stage here.")
    stage.part("reading-code").press("ArrowLeft")
    expect(stage.part("reading-formula")).to_be_focused()
    expect(stage.part("formula")).to_be_visible()
