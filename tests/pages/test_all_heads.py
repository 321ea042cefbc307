"""Heads and the sheet of one: every view on every model, its numbers, and texts that could break it."""

import json
import re
import threading
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Model, Trace
from model.analysis.attribution.head_matrices import (
    HeadMatrices,
    compositions_of,
    copying_score,
    head_matrices,
    looking,
    writing,
)
from model.analysis.heads import contributions
from model.analysis.heads.contributions import Merged, ablate_each
from model.analysis.heads.statistics import NOTHING_COMES_BACK, families, heads_of
from model.analysis.run_comparison import rounding
from model.profile.shipped import shipped_profile
from model.run import passes
from model.serving.engine import Request
from tests.model.tiny import sentence
from tests.pages.kinds import name_of
from tests.pages.reading import control, numbers, own, said, shows, tables, traces, visit, walk
from viz.notation.head_labels import SHORT
from viz.notation.numbers import led_by
from viz.shell import background
from viz.views.all_heads.matrices import compare_one
from viz.views.all_heads.writing import TITLE

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
JOINED = "Joined"
ALIKE, _ = led_by([""] * 8, np.zeros(8), decimals=3)
MISSING = re.compile(r"\b(nan|inf)\b")


def opened(show: str, **parameters: str) -> AppTest:
    return visit("all_heads", **{"model": "stories", "text": TEXT, "show": show} | parameters)


def sheet(show: str, **parameters: str) -> AppTest:
    """The screen of one head."""
    return visit("head", **{"model": "stories", "text": TEXT, "show": show} | parameters)


def test_every_view_draws_the_heads_of_each_kind_of_sublayer() -> None:
    """The first kind: test_every_view.py."""
    translator = own("translate-en-fr")
    text = sentence(translator)
    for family in families(translator.trace(text))[1:]:
        grid = opened("Maps", model=translator.name, text=text)
        control(grid, "Heads of").set_value(family).run()
        for view, app in walk(grid):
            kinds = [one.value for one in app.selectbox if one.label == "Heads of"]
            assert kinds in ([], [family]), view
            assert not MISSING.search(said(app)), view


def test_the_scores_name_the_head_that_has_most() -> None:
    app = opened("Pattern")
    assert "**L0H1** with 0.7" in said(app)
    control(app, "Score").select("Induction").run()
    assert "too few to" in said(app)
    frame = tables(app)[0]
    assert len(frame) == 8
    app = opened("Pattern", text="the cat saw a dog", model="stories")
    assert NOTHING_COMES_BACK in said(app)
    app = opened("Pattern", text="cat dog mat hat cup cat dog mat hat cup cat")
    control(app, "Score").select("Induction").run()
    assert ": L1H2, L1H3, L1H1 and 1 more." in said(app)
    control(app, "Score").select("Next token").run()
    assert f"{ALIKE} with 0.000" in said(app)


def test_the_list_has_the_heads_from_the_most_down_and_names_their_jobs() -> None:
    app = opened("Pattern")
    frame = tables(app)[0]
    control(app, "Show as").set_value("List").run()
    (bars,) = [one for one in pictures(app)[0]["data"] if one.get("name") == "heads"]
    shown = numbers(bars["x"])
    assert shown.tolist() == sorted(frame["Previous token"], reverse=True)
    rows = pictures(app)[0]["layout"]["yaxis"]["ticktext"]
    assert any(row.endswith("previous") for row in rows)


def test_the_numbers_over_a_corpus_are_the_profiles_own() -> None:
    app = opened("Over a corpus")
    profile = shipped_profile("stories")
    assert profile is not None
    frame = tables(app)[0]
    for title, column in (("Previous token", "previous"), ("Entropy", "entropy")):
        expected = [
            profile.heads.set_index(["layer", "head"])[column][(f"decoder.{layer}.self", head)]
            for layer in range(2)
            for head in range(4)
        ]
        assert frame[title].to_numpy(float) == pytest.approx(np.array(expected, float))
        control(app, "Measure").select(title).run()
        assert f"{max(expected):.2f}" in said(app)


def test_only_a_model_with_a_profile_has_numbers_over_a_corpus() -> None:
    (views,) = shows(opened("Maps", model="notes-second-class", text="A cat"))
    assert "Over a corpus" not in views.options
    assert "Your corpus" in views.options


def pictures(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(one.proto.spec) for one in app.get("plotly_chart")]


def test_all_heads_go_through_w_o_and_through_the_identity() -> None:
    app = sheet(JOINED, place="decoder.1.self", head="2", query="4")
    trace = own("stories").trace(TEXT)
    attention = trace.find("decoder.1.self")
    assert "chosen head, L1H2." in said(app)
    heads = attention.heads
    strips = [numbers(one["z"])[0] for one in traces(app)[:heads]]
    assert np.concatenate(strips) == pytest.approx(np.concatenate(attention.output[:, 4]))
    total, recorded = (numbers(one["z"])[0] for one in traces(app)[-2:])
    added = trace.residual["decoder"][3][4] - trace.residual["decoder"][2][4]
    assert recorded == pytest.approx(added, abs=1e-5)
    assert f"all {len(added)} numbers" in said(app)
    assert total == pytest.approx(recorded, abs=1e-4)
    control(app, "W_O").select("The identity").run()
    total, recorded = (numbers(one["z"])[0] for one in traces(app)[-2:])
    assert total == pytest.approx(np.concatenate(strips), abs=1e-5)
    assert recorded == pytest.approx(added, abs=1e-5)
    assert f"own {attention.output.shape[-1]} numbers" in said(app)


def test_where_no_identity_fits_w_o_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Merged) -> Merged:
        raise ValueError("no identity does so")

    monkeypatch.setattr(Merged, "by_identity", refuse)
    app = sheet(JOINED, model=name_of("llama"), text="the cat")
    control(app, "W_O").select("The identity").run()
    assert "identity does so" in said(app)
    assert not re.search(r"own \d+ numbers", said(app))


def test_heads_that_share_keys_are_said_to() -> None:
    grouped = {"model": name_of("llama"), "text": "the cat"}
    assert "2 heads of keys" in said(opened("Maps", **grouped))
    assert "2 heads of keys" in said(visit("head", show=JOINED, **grouped))
    assert "heads of keys" not in said(opened("Maps"))


def test_equal_heads_share_the_first_place() -> None:
    app = opened("Word to word", query="0", key="0")  # the first token sees itself alone
    assert f"{ALIKE} put" in said(app)


def test_two_words_pick_the_weight_of_every_head() -> None:
    app = opened("Word to word", query="12", key="1")
    trace = own("stories").trace(TEXT)
    weights = [one.weights(head)[12, 1] for one in trace.attention for head in range(one.heads)]
    assert f"{max(weights):.3f}" in said(app)
    assert f"all {len(weights)} heads is {np.mean(weights):.3f}." in said(app)
    control(app, "To").set_value(0).run()
    assert f"{max(one.weights(h)[12, 0] for one in trace.attention for h in range(4)):.3f}" in said(
        app
    )
    control(app, "From").set_value(3).run()
    control(app, "To").set_value(9).run()
    assert "the mask forbids" in said(app)


def test_the_parts_of_the_logit_are_listed_and_add_up_to_it() -> None:
    app = opened("What it writes")
    control(app, "Measure").select("Effect on a logit").run()
    trace = own("stories").trace(TEXT)
    frame = tables(app)[0]
    assert frame[TITLE].sum() == pytest.approx(trace.logits[-1].max(), abs=1e-4)
    assert len(frame) == 2 + 8 + 2 + 2 + 1  # embeddings, heads, biases, feed-forwards, norm


def test_an_encoder_has_no_logit_and_the_page_says_who_has() -> None:
    app = opened("What it writes", model="minilm", text="the cat saw the cat")
    assert app.info[0].value.startswith("MiniLM")
    assert any("House GPT" in button.label for button in app.button)


def test_ablation_shows_what_a_pass_without_each_head_says() -> None:
    app = opened("Leave one out")
    control(app, "Measure").select("Probability of the next token").run()
    assert re.search(r"\*\*L0H1\*\* [^*]* \*\*·Hill\*\* [^.]* 0\.99", said(app))
    frame = tables(app)[0]
    assert len(frame) == 8
    assert frame["head"][int(frame["change"].abs().argmax())] == "L0H1"


def test_hovering_over_a_head_shows_the_digits_that_single_precision_settles() -> None:
    app = opened("Leave one out", model="house-gpt")
    assert 1e-4 < rounding(own("house-gpt").trace(TEXT)) < 2e-4
    for measure in ("Probability of the next token", "Its logit", "Loss of the text"):
        control(app, "Measure").select(measure).run()
        words = hovered(app)
        assert {len(word.partition(".")[2]) for word in words} == {3}


def hovered(app: AppTest) -> list[str]:
    """What hovering over each head of the map says."""
    pictures = [json.loads(e.proto.spec)["data"] for e in app.get("plotly_chart")]
    (heads,) = [one for data in pictures for one in data if one.get("name") == "heads"]
    return heads["text"]


def test_passes_that_have_found_nothing_hold_the_place_of_their_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "AT_FIRST", 0)
    go, without = threading.Event(), contributions.forward

    def held(*asked: Any, **how: Any) -> passes.ForwardPass:
        assert go.wait(60)
        return without(*asked, **how)

    monkeypatch.setattr(contributions, "forward", held)
    try:
        app = opened("Leave one out", text=f"{TEXT} again")  # no other test has asked for it
        assert [one.text[:6] for one in app.get("progress")] == ["0 of 8"]
        places = [one for one in app.get("html") if one.proto.body == '<div class="held"></div>']
        assert len(places) == 1
    finally:
        go.set()
    monkeypatch.setattr(background, "AT_FIRST", None)
    app.run()
    assert not [one for one in app.get("html") if 'class="held"' in one.proto.body]
    assert app.get("plotly_chart")


def test_a_long_ablation_waits_to_be_asked_and_a_stopped_one_shows_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "UNASKED", 0)
    text = "the dog found the old ball near the river"
    app = opened("Leave one out", text=text)
    assert "Without **" not in said(app)
    start = [button for button in app.button if button.label.startswith("Leave out each of the 8")]
    start[0].click().run()
    assert not app.exception
    assert "Without **" in said(app)
    app.text_area[0].set_value(f"{text} again").run()  # of which nobody has asked
    assert "Without **" not in said(app)
    model = own("stories")
    request = Request("stories", text)
    run = background.shared_passes().known(("all-heads-ablation", request))
    monkeypatch.setattr(passes, "MOST_ROWS", 3)
    run.found = next(ablate_each(model, model.trace(text), run.found.watched, nullcontext))
    app = opened("Leave one out", text=text)
    assert "Stopped after 3 heads" in said(app)
    assert "Without **" in said(app)


def test_the_sentences_about_a_heads_matrices_tell_their_numbers() -> None:
    model = own("stories")
    trace = model.trace(TEXT)
    made = head_matrices(model, trace, "decoder.1.self", 3)
    app = sheet("Matrices", place="decoder.1.self", head="3")
    found = looking(model, trace, made).product
    words = [token.text.strip() for token in trace.tokens]
    row, column = np.unravel_index(found.argmax(), found.shape)
    same = np.array([[one.text == other.text for other in trace.tokens] for one in trace.tokens])
    assert f"highest: {found.max():.2f}" in said(app)
    assert words[row] in said(app)
    assert words[column] in said(app)
    assert f"itself is {found[same].mean():.2f}".replace("-", "−") in said(app)
    control(app, "Matrix").select("W_V · W_O").run()
    factors = writing(model, trace, made, whole=True)
    assert f"copying score is **{copying_score(factors):+.2f}**".replace("-", "−") in said(app)
    control(app, "Matrix").select("Composition").run()
    keys = [one for one in compositions_of(made, heads_made(model, trace)) if one.reads == "K"]
    most = max(keys, key=lambda one: one.ratio)
    assert f"L1H3 reads L0H{most.earlier[1]} through its keys, {most.ratio:.3f}" in said(app)


def test_the_distance_between_rotated_tokens_stays_within_a_shorter_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("viz.views.all_heads.matrices.FEW", 0)  # as if there were many heads
    monkeypatch.setattr("viz.shell.background.UNASKED", 0)  # which take long to compare
    given = {"model": name_of("llama"), "text": "the cat saw the dog", "place": "decoder.2.self"}
    app = sheet("Matrices", **given, head="5")
    (before,) = (one for one in app.slider if "the query after it" in one.label)
    far = said(app)
    before.set_value(4).run()
    assert said(app) != far
    control(app, "Matrix").select("Composition").run()
    (start,) = (one for one in app.button if one.key == "all-heads-composed-start")
    assert {"L2H5", "18"} <= {*start.label.split()}
    control(app, "Matrix").select("W_Q · W_Kᵀ").run()
    app.text_area[0].set_value("the cat").run()
    assert not app.exception
    assert not app.error


def test_one_head_is_compared_with_those_of_one_sub_layer_at_a_time() -> None:
    model = own("stories")
    trace = model.trace(TEXT)
    head = ("decoder.1.self", 3)
    steps = list(compare_one(model, trace, head, background.Passes(None)))
    heads = heads_of(trace.attention)
    assert [step.done for step in steps] == [4 * at for at in range(1, len(trace.attention) + 1)]
    assert steps[-1].total == len(heads)
    whole = compositions_of(head_matrices(model, trace, *head), heads_made(model, trace))
    assert list(steps[-1].ratios) == list(whole)


def test_a_head_of_an_encoder_has_no_matrix_to_the_logits_and_says_so() -> None:
    app = sheet("Matrices", model="minilm", text="the cat saw a dog")
    control(app, "Matrix").select("W_V · W_O").run()
    assert "is an encoder" in app.info[-1].value


def test_the_jobs_of_the_shipped_profile_stand_on_the_tiles() -> None:
    app = opened("Maps")
    found = shipped_profile("stories")
    given = found.given
    assert f"{found.sums.tokens:,} tokens" in said(app)
    traces = {one.get("name"): one for one in pictures(app)[0]["data"]}
    assert sum(one.count("label: ") for one in traces["heads"]["text"]) == len(given)
    first = given.drop_duplicates(["layer", "head"])
    expected = [""] * 8
    for row in first.to_dict("records"):
        expected[4 * int(row["layer"].split(".")[1]) + row["head"]] = SHORT[row["label"]]
    assert traces["jobs"]["text"] == expected


def test_a_model_of_other_weights_has_no_labels() -> None:
    app = opened("Maps", model="notes-second-class", text="A cat")
    names = [one.get("name") for one in pictures(app)[0]["data"]]
    assert "heads" in names
    assert "jobs" not in names


def heads_made(model: Model, trace: Trace) -> list[HeadMatrices]:
    return [head_matrices(model, trace, *head) for head in heads_of(trace.attention)]
