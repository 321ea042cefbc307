"""The view of the key–value cache: its numbers are those of the passes of each step."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Trace
from model.analysis.tokens.live_writing import Choice, shorter_caches
from model.analysis.tokens.prediction import Sampling
from model.serving.engine import Request
from tests.pages.kinds import name_of
from tests.pages.reading import control, numbers, said, visit
from viz.notation.numbers import difference
from viz.state.engine import engine

pytestmark = pytest.mark.slow

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
SOURCE = "the black cat sees the dog"


def opened(**parameters: str) -> AppTest:
    return visit(
        "prediction", **{"model": "stories", "text": TEXT, "show": "KV cache"} | parameters
    )


def passes(app: AppTest, model: str) -> list[Trace]:
    """The pass of each step, over the text and what was written."""
    target, text = "" if model == "translate-en-fr" else None, app.text_area[0].value
    ids: tuple[int, ...] = ()
    found: list[Trace] = []
    for _ in range(control(app, "Step").value):
        request = Request(model, text, target, continued=ids)
        found.append(engine().trace(request, lambda place: None))
        ids += (int(found[-1].require_prediction().after(-1).argmax()),)
    return found


def test_the_cache_holds_the_recorded_keys_and_saves_the_counted_scores(
    subtests: pytest.Subtests,
) -> None:
    for model, text in [("stories", TEXT), ("translate-en-fr", SOURCE), ("llama", "the cat saw")]:
        with subtests.test(model=model):
            app = opened(model=name_of(model), text=text)
            traces = passes(app, name_of(model))
            decoder = [
                [one for one in trace.attention if one.stack == "decoder"] for trace in traces
            ]
            sizes = [sum(array.nbytes for array in one.vectors[1:]) for one in decoder[-1]]
            words = said(app)
            assert f" {sum(sizes):,} bytes: {sizes[0]:,} in the self" in words
            (formula,) = [one.value for one in app.latex if "key heads" in one.value]
            assert formula.strip("$\n").endswith(f"= {sum(sizes):,}".replace(",", "{,}"))
            shapes = [[one.heads * np.prod((one.query.shape[1], one.key.shape[1])) for one in layers]
                      for layers in decoder]  # fmt: skip
            read = [len(trace.tokens_of("decoder")) for trace in traces]
            saved = [sum(one.heads * one.key.shape[1] for one in layers) for layers in decoder]
            saved[0] *= read[0]
            assert f"| at step 5, n = {read[-1]} | {saved[-1]:,} | {sum(shapes[-1]):,} |" in words
            assert f"| in 5 steps | {sum(saved):,} | {sum(map(sum, shapes)):,} |" in words
            kept = [array for one in decoder[-2] for array in one.vectors[1:]]
            again = [array for one in decoder[-1] for array in one.vectors[1:]]
            gaps = [np.abs(b[:, : a.shape[1]] - a).max() for a, b in zip(kept, again, strict=True)]
            apart = (
                f"differ by at most {difference(float(max(gaps)))}."
                if max(gaps)
                else "the same, to the"
            )
            assert apart in words
            assert f"share {sum(array.size for array in kept):,} numbers" in words
            assert len(app.success) == 1
            assert "the same logits" in words
            chart, _ = app.get("plotly_chart")
            cells, *_ = json.loads(chart.proto.spec)["data"]
            drawn = numbers(cells["z"]).reshape(5, -1)
            assert (drawn == 2).sum(1).tolist() == [0, *read[:-1]]  # kept
            assert (drawn == 1).sum(1).tolist() == [read[0], 1, 1, 1, 1]  # computed now


def test_layers_with_a_window_have_no_more_keys_than_it_is_wide() -> None:
    """Windows of 8 in 2 of 4 layers with 4 heads each; the text has 13 tokens, 17 at step 5."""
    app = opened(model="all-stages")
    words = said(app)
    assert all(f" {keys} keys in 2 " in words for keys in (8, 17))
    chart, _ = app.get("plotly_chart")
    cells, *_ = json.loads(chart.proto.spec)["data"]
    drawn = numbers(cells["z"]).reshape(5, -1)
    assert (drawn == 2).sum(1).tolist() == [0, 7, 7, 7, 7]  # kept everywhere: in the window
    assert (drawn == 3).sum(1).tolist() == [0, 6, 7, 8, 9]  # by layers without one alone
    saved = [4 * 4 * 13 * 13] + [4 * (2 * 8 + 2 * read) for read in range(14, 18)]
    assert f"| at step 5, n = 17 | {saved[-1]:,} | {4 * 4 * 17 * 17:,} |" in words
    assert f"| in 5 steps | {sum(saved):,} | " in words


def test_at_the_first_step_and_in_a_full_context_nothing_is_kept_yet() -> None:
    app = opened()
    control(app, "Step").set_value(1).run()
    assert "nothing is kept" in said(app)
    assert "Measured" not in said(app)
    app = opened(text="cat " * 127 + "cat")
    assert "nothing is kept" in said(app)
    assert "the last 24 of 128" in app.get("plotly_chart")[0].proto.spec
    assert not app.exception


def test_the_sink_experiment_shows_the_texts_and_numbers_of_three_caches() -> None:
    asked = {"prediction-window": "4", "prediction-first": "2"}
    app = opened(model="house-gpt", show="A shorter cache", **asked)
    model = engine().model("house-gpt", lambda sentence, share: None)
    compared = shorter_caches(
        model, model.tokens(TEXT), Choice(Sampling()), steps=16, window=4, first=2
    )
    *_, last = compared
    words = said(app)
    for one, name in zip(
        last.found, ("Everything kept", "The last 4", "The last 4 and the first 2"), strict=True
    ):
        assert f"**{name}**" in words
        for logs in (one.of_whole, one.of_own):
            assert f"**{np.exp(-logs.mean()):,.2f}**" in words
        held = sum(kept.nbytes for kept in one.writing.steps[-1].kept.values())
        assert f" | {held:,} |" in words
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    drawn = {line["name"]: numbers(line["y"]) for line in spec["data"]}
    np.testing.assert_allclose(drawn["the last 4"], last.found[1].of_whole)
    assert app.select_slider(key="prediction-first").value == 2
    assert "wins back" in words
    assert "attention sink" not in words  # the perplexities alone do not show one
    assert "a place to rest" not in words


def test_an_encoder_says_why_it_can_keep_no_keys() -> None:
    refused = "every kept key"
    assert refused in said(opened(model="minilm"))
    assert refused not in said(opened(model="minilm", show="Token by token"))
