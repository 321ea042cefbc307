"""What the player's browser side is sent: small, finite, safe to draw, and true to the weights."""

import base64
import json

import numpy as np
import pytest

from model.analysis.heads.ranking import scores
from model.analysis.heads.statistics import families
from model.nn.places import head_label
from model.training.checkpoints import Archive, shipped_training_run
from tests.cases import cases
from tests.model.tiny import loaded
from viz.views.all_heads.patterns import BY_NAME
from viz.views.training.player import message
from viz.views.training.player.message import charts, part_name, patterns
from viz.views.training.views import STRIPE

ARCHIVE = Archive()


def sent(name: str, text: str, place: str, head: int) -> dict:
    training_run = shipped_training_run(name)
    traces, movement = ARCHIVE.traces(training_run, text), ARCHIVE.movement(training_run)
    return json.loads(
        json.dumps(message(training_run, traces, movement, place=place, head=head), allow_nan=False)
    )


def test_weights_arrive_as_they_are() -> None:
    training_run, place = shipped_training_run("induction"), "decoder.1.self"
    traces = sent("induction", "a b c a b c", place, 2)
    weights = ARCHIVE.traces(training_run, "a b c a b c").weights(place, 2)
    allowed = np.frombuffer(base64.b64decode(traces["allowed"]), np.uint8).reshape(6, 6)
    arrived = np.frombuffer(base64.b64decode(traces["weights"]), "<f4").reshape(7, -1)
    assert np.array_equal(arrived, weights[:, allowed == 1])
    assert (allowed == np.tri(6)).all()
    assert (weights[:, allowed == 0] == 0).all()


def test_the_longest_player_stays_within_half_a_megabyte() -> None:
    traces = sent("stories", "the cat saw the dog. " * 60, "decoder.0.self", 1)
    assert len(traces["queries"]) == 128
    assert len(json.dumps(traces)) < 500_000


def test_a_text_of_one_token_has_no_pattern_and_any_token_is_one_label() -> None:
    traces = sent("stories", "a", "decoder.1.self", 0)
    assert traces["framed"] is None
    assert ["largest" in one["name"] for one in traces["measures"]] == [True]
    hostile = sent("stories", "<b>\u202e🦊\n$x$", "decoder.1.self", 0)
    assert not any("\u202e" in label or "\n" in label for label in hostile["keys"])


def test_training_and_all_heads_give_one_number_for_one_head_and_say_what_it_is() -> None:
    """“cat” at the start and “·cat” later are two tokens, for both."""
    text, place = "cat dog mat hat cup cat dog mat hat cup cat", "decoder.1.self"
    traces = sent("stories", text, place, 2)
    (shown,) = (one for one in traces["measures"] if one["name"].endswith("the same token earlier"))
    trace = loaded("stories").trace(text)
    found = scores(trace, families(trace)[0])
    ranked = dict(found.ranked("induction"))[place, 2]
    weights = trace.find(place).weights(2)
    assert shown["values"][-1] == pytest.approx(ranked, abs=1e-6)
    assert ranked == pytest.approx(np.mean([weights[i, i - 4] for i in range(6, 11)]), abs=1e-6)
    assert "earlier occurrences" in BY_NAME["induction"].meaning
    framed = np.frombuffer(base64.b64decode(traces["framed"]), np.uint8).reshape(11, 11)
    assert [tuple(cell) for cell in np.argwhere(framed)] == [(i, i - 4) for i in range(6, 11)]


def test_the_formula_of_the_stripe_is_the_number_beside_it() -> None:
    """In "q q f q q" what followed the first "q" is the second itself, which does not count."""
    assert r"\sum_{j < i,\ x_{j-1} = x_i} w_{ij}" in STRIPE
    text, place = "q q f q q", "decoder.1.self"
    training_run = shipped_training_run("induction")
    traces = ARCHIVE.traces(training_run, text)
    weights = traces.weights(place, 2)[-1]
    rows = [sum(weights[i, j] for j in cells) for i, cells in ((3, (1, 2)), (4, (1, 2)))]
    shown = sent("induction", text, place, 2)["measures"][0]["values"][-1]
    assert shown == pytest.approx(np.mean(rows), abs=1e-6)


def test_layers_that_look_both_ways_and_across_have_no_pattern_of_a_gpt() -> None:
    traces = ARCHIVE.traces(shipped_training_run("translate-en-fr"), "the black cat")
    assert patterns(traces, "encoder.0.self") == {}
    assert patterns(traces, "decoder.1.cross") == {}
    assert list(patterns(traces, "decoder.1.self")) == ["previous_token"]


def test_losses_and_scores_stand_in_their_own_charts_and_counts_in_none() -> None:
    history = (
        {"step": 0, "induction": 0.1, "heads_that_align": 5.0},
        {"step": 9, "induction": 0.9, "heads_that_align": 7.0, "loss": 3.2},
    )
    loss, scores = charts(history)
    assert [line["name"] for line in loss["lines"]] == ["training loss"]
    assert loss["high"] == 4
    assert [(line["steps"], line["values"]) for line in scores["lines"]] == [([0, 9], [0.1, 0.9])]
    closer, _ = charts(history, [(1, 5.5), (2, 4.0)])
    assert closer["lines"][0]["steps"] == [1, 2]
    assert closer["high"] == 6


def test_the_lines_of_a_chart_can_be_told_apart() -> None:
    for name in ("induction", "stories", "translate-en-fr"):
        for chart in charts(shipped_training_run(name).history):
            looks = [(*line["colour"], line["dash"]) for line in chart["lines"]]
            assert len(set(looks)) == len(looks)


@cases("place, expected", [
    ("decoder.1.self", "L1H2"),
    ("decoder.0.cross", "cross L0H2"),
    ("encoder.1.self", "encoder L1H2"),
])  # fmt: skip
def test_every_head_has_a_name_of_its_own(place, expected) -> None:
    assert head_label((place, 2)) == expected


def test_parts_are_named_in_words() -> None:
    assert part_name("embedding.tokens") == "token table"
    assert part_name("decoder.0.self") == "decoder L0 attention"
    assert part_name("encoder.1.feed_forward") == "encoder L1 feed-forward"
    assert part_name("decoder.final_norm") == "final norm"
