"""Why the first token?: what the view says is what its run shows, for decoders, encoders and translators."""

import re

import numpy as np
import pytest

from model import Intervention
from model.analysis.run_comparison import movement
from model.analysis.tokens.prediction import divergence
from tests.cases import cases
from tests.pages.reading import control, own, said, visit

pytestmark = pytest.mark.slow

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
VIEW = "First token"


@cases("model", ["house-gpt", "minilm"])
def test_the_sentence_is_that_of_a_plain_loop(model) -> None:
    words = said(visit("all_heads", model=model, text=TEXT, show=VIEW))
    trace = own(model).trace(TEXT)
    weights = [one.weights(head) for one in trace.attention for head in range(one.heads)]
    on_it = np.array([one[1:, 0].mean() for one in weights])
    keys = [(row > 0).sum() for row in weights[0][1:]]
    assert f"gets {on_it.mean():.2f} of the weight" in words
    assert f"it would get {np.mean(1 / np.array(keys)):.2f}." in words
    assert f"with {on_it.max():.2f}" in words
    resting = int((on_it > 0.5).sum())
    assert f"In {resting} of {len(weights)} heads" in words
    less = "moves the stream, but by less than its share" in words
    moves_little = "most of this weight moves the stream little" in words
    carried = int(re.search(r"its edges carry (\d+)%", words)[1])  # type: ignore[index]
    given = 100 * on_it[on_it > 0.5].mean()
    assert moves_little == (carried < given / 2)
    assert less == (given / 2 <= carried < round(given))


def test_a_text_without_a_sink_is_said_to_have_none() -> None:
    words = said(visit("all_heads", model="induction", text="a b c d e a b c d e", show=VIEW))
    assert "No head gives" in words
    assert "moves the stream" not in words


def test_the_hidden_token_is_told_by_its_own_run() -> None:
    app = visit("all_heads", model="house-gpt", text=TEXT, show=VIEW)
    control(app, "Number").select("When it is hidden").run()
    model = own("house-gpt")
    before, after = (
        model.trace(TEXT, intervention=Intervention(hidden=frozenset(hidden)))
        for hidden in ((), (0,))
    )
    rows = [run.require_prediction().after(-1) for run in (before, after)]
    assert f"**{float(divergence(*rows)):.2f} nats**" in said(app)
    moved = [
        (theirs.weights(head)[1:] - ours.weights(head)[1:]).mean(0)
        for ours, theirs in zip(before.attention, after.attention, strict=True)
        for head in range(ours.heads)
    ]
    gained = np.mean(moved, axis=0)
    first = int(gained.argmax())
    assert f"(position {first}) {gained[first]:+.2f}" in said(app)
    apart = movement(before, after, "decoder").share[-1][1:].mean()
    assert f"other tokens: **{apart:.1%} away**" in said(app)


@cases(
    "model, text, place, refused",
    [
        ("house-gpt", "Tom", "decoder.0.self", "position 0"),
        ("translate-en-fr", "sleeps", "decoder.0.cross", "no other token"),
    ],
)
def test_one_token_alone_is_compared_with_none(model, text, place, refused) -> None:
    app = visit("all_heads", model=model, text=text, place=place, show=VIEW)
    assert refused in app.info[0].value


def test_a_model_with_learned_sinks_tells_what_they_take() -> None:
    app = visit("all_heads", model="all-stages", text=TEXT, show=VIEW)
    control(app, "Number").select("The learned sink").run()
    trace = own("all-stages").trace(TEXT)
    taken = []
    for one in trace.attention:
        rows = np.ones(len(trace.tokens), bool) if one.mask is None else one.mask[:, 0].copy()
        rows[0] = False
        taken += [one.sink_weights(head)[rows].mean() for head in range(one.heads)]
    assert f"takes {np.mean(taken):.2f} of the weight" in said(app)
    control(app, "Number").select("When it is hidden").run()
    assert "the learned sink +" in said(app)
    assert "with its sink's" in said(app)
    plain = visit("all_heads", model="house-gpt", text=TEXT, show=VIEW)
    assert "The learned sink" not in control(plain, "Number").options
