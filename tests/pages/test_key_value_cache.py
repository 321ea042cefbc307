"""The view of the key–value cache: its numbers are those of the passes of each step."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Trace
from model.analysis.tokens.live_writing import Choice, live_writing, shorter_caches
from model.analysis.tokens.prediction import Sampling
from model.serving.engine import Request
from tests.cases import cases
from tests.pages.kinds import name_of
from tests.pages.reading import choose, numbers, said, traces, visit
from viz.notation.numbers import difference
from viz.state.engine import engine

pytestmark = pytest.mark.slow

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
SOURCE = "the black cat sees the dog"


def opened(**parameters: str) -> AppTest:
    return visit("writing", **{"model": "stories", "text": TEXT, "show": "KV cache"} | parameters)


def passes(app: AppTest, model: str) -> list[Trace]:
    """The pass of each step, over the text and what was written."""
    target, text = "" if model == "translate-en-fr" else None, app.text_area[0].value
    ids: tuple[int, ...] = ()
    found: list[Trace] = []
    for _ in range(len(cells(app))):
        request = Request(model, text, target, continued=ids)
        found.append(engine().trace(request, lambda place: None))
        ids += (int(found[-1].require_prediction().after(-1).argmax()),)
    return found


def cells(app: AppTest) -> np.ndarray:
    """The state of each token's keys, (step, token)."""
    drawn = traces(app)[0]
    return numbers(drawn["z"]).reshape(len(drawn["hovertext"]), -1)


def bars(app: AppTest) -> list[np.ndarray]:
    """What each step takes, and the same as it is without the cache or with every token kept."""
    return [numbers(part["x"]) for part in traces(app)[1:]]


@cases("model, text", [("stories", TEXT), ("translate-en-fr", SOURCE), ("llama", "the cat saw")])
def test_the_cache_holds_the_recorded_keys_and_saves_the_counted_scores(model, text) -> None:
    app = opened(model=name_of(model), text=text)
    runs = passes(app, name_of(model))
    decoder = [[one for one in run.attention if one.stack == "decoder"] for run in runs]
    sizes = [sum(array.nbytes for array in one.vectors[1:]) for one in decoder[-1]]
    words = said(app)
    assert f" {sum(sizes):,} bytes: {sizes[0]:,} in the self" in words
    (formula,) = [one.value for one in app.latex if "key heads" in one.value]
    assert formula.strip("$\n").endswith(f"= {sum(sizes):,}".replace(",", "{,}"))
    shapes = [sum(one.heads * np.prod((one.query.shape[1], one.key.shape[1])) for one in layers)
              for layers in decoder]  # fmt: skip
    read = [len(run.tokens_of("decoder")) for run in runs]
    saved = [sum(one.heads * one.key.shape[1] for one in layers) for layers in decoder]
    saved[0] *= read[0]
    cached, uncached = bars(app)
    assert cached.tolist() == saved
    assert uncached.tolist() == shapes
    kept = [array for one in decoder[-2] for array in one.vectors[1:]]
    again = [array for one in decoder[-1] for array in one.vectors[1:]]
    gaps = [np.abs(b[:, : a.shape[1]] - a).max() for a, b in zip(kept, again, strict=True)]
    apart = (
        f"differ by at most {difference(float(max(gaps)))}." if max(gaps) else "the same, to the"
    )
    assert apart in words
    assert f"share {sum(array.size for array in kept):,} numbers" in words
    state = cells(app)
    assert (state == 2).sum(1).tolist() == [0, *read[:-1]]  # kept
    assert (state == 1).sum(1).tolist() == [read[0], *[1] * (len(read) - 1)]  # computed


def test_what_is_kept_in_bytes_is_what_the_running_model_holds() -> None:
    app = opened()
    choose(app, "Saved", "bytes kept")
    model = engine().model("stories", lambda *news: None)
    *_, found = live_writing(model, model.tokens(TEXT), Choice(Sampling()), steps=16)
    (kept,) = bars(app)
    held = [sum(one.nbytes for one in step.kept.values()) for step in found.steps]
    assert kept.tolist() == held


def test_the_time_of_each_step_is_measured_in_both_ways() -> None:
    app = opened()
    choose(app, "Saved", "milliseconds")
    with_it, without = bars(app)
    assert len(with_it) == len(without) == 16
    assert min(*with_it, *without) > 0
    assert "the same logits" in said(app)


def test_layers_with_a_window_have_no_more_keys_than_it_is_wide() -> None:
    """Windows of 8 in 2 of 4 layers with 4 heads each; the text has 13 tokens."""
    app = opened(model="all-stages")
    state = cells(app)
    steps = len(state)
    assert all(f" {keys} keys in 2 " in said(app) for keys in (8, 12 + steps))
    assert (state == 2).sum(1).tolist() == [0, *[7] * (steps - 1)]  # kept everywhere: in the window
    alone = range(6, 5 + steps)
    assert (state == 3).sum(1).tolist() == [0, *alone]  # by layers without one alone
    cached, uncached = bars(app)
    reads = range(14, 13 + steps)
    assert cached.tolist() == [4 * 4 * 13 * 13] + [4 * (2 * 8 + 2 * read) for read in reads]
    assert uncached[-1] == 4 * 4 * (12 + steps) ** 2


def test_in_a_full_context_nothing_is_kept_yet() -> None:
    app = opened(text="cat " * 127 + "cat")
    assert "nothing is kept" in said(app)
    assert cells(app).shape == (1, 40)
    assert (cells(app) == 1).all()


def test_a_shorter_cache_drops_what_it_says_and_reads_the_same_text(
    subtests: pytest.Subtests,
) -> None:
    model = engine().model("house-gpt", lambda sentence, share: None)
    given = len(model.tokens(TEXT))
    for first, number in ((2, 2), (0, 1)):
        with subtests.test(first=first):
            asked = {"prediction-window": "4", "prediction-first": str(first)}
            app = opened(model="house-gpt", **asked)
            *_, last = shorter_caches(
                model, model.tokens(TEXT), Choice(Sampling()), steps=16, window=4, first=first or 1
            )
            whole, short = last.found[0], last.found[number]
            scores, every, shares, before = bars(app)
            np.testing.assert_allclose(shares, np.exp(short.of_whole), rtol=1e-6)
            np.testing.assert_allclose(before, np.exp(whole.of_whole), rtol=1e-6)
            state = cells(app)
            assert (state == 2).sum(1).tolist() == [0, *[3 + first] * 15]
            held = sum(one.tokens for one in short.writing.steps[-1].kept.values())
            layers = len(short.writing.steps[-1].kept)
            assert held == layers * (3 + first)  # the next token's own key comes with it
            config = model.config
            assert scores[1:].tolist() == [config.heads * layers * (4 + first)] * 15
            assert every[-1] == config.heads * layers * (given + 15)
            words = said(app)
            for logs in (whole.of_whole, short.of_whole, short.of_own):
                assert f"**{np.exp(-logs.mean()):,.2f}**" in words
            choose(app, "Saved", "bytes kept")
            kept, *_ = bars(app)
            assert kept[-1] == sum(one.nbytes for one in short.writing.steps[-1].kept.values())


def test_in_the_place_of_an_encoder_a_model_that_writes_is_shown() -> None:
    app = opened(model="minilm")
    assert app.button(key="use-a-gpt")
    assert len(cells(app)) == 16
