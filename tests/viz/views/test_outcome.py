"""What comes of a run, beside the map: against PyTorch's cross-entropy and softmax."""

import html
import re
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn.functional import cross_entropy

from model import Intervention, Model, load_model
from model.profile.shipped import profile_of
from model.run.tokenizers import WordTokenizer
from tests.pages.reading import visit
from viz.explorer.hero import hero
from viz.notation.labels import token_label
from viz.state.link import View, from_link
from viz.views.home.outcome import LABEL, job_of, outcome, ways

UNMASKED = Intervention(mask="none")


def logits_and_tokens(intervention: Intervention) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the model itself, without a trace: (token, vocabulary), and the ids (token,)."""
    model = load_model("house-gpt")
    trace = model.trace(View().text, intervention=intervention)
    ids = torch.tensor([token.id for token in trace.tokens])
    return torch.from_numpy(trace.require_prediction().rows(0, len(ids)).copy()), ids


def shown(**parameters: str) -> str:
    """The rows and the loss, as the page has them, without markup."""
    app = visit("home", mask="none", **parameters)
    drawn = " ".join(one.value for one in app.get("html") if 'class="outcome' in one.value)
    return " ".join(re.sub(r"<[^>]+>", " ", drawn).split())


@pytest.mark.parametrize(("parameters", "decimals"), [({}, 2), ({"detail": "full"}, 3)])
def test_the_losses_and_probabilities_are_pytorchs(
    parameters: dict[str, str], decimals: int
) -> None:
    words = shown(**parameters)
    losses = []
    for change in (Intervention(), UNMASKED):
        logits, ids = logits_and_tokens(change)
        losses.append(float(cross_entropy(logits[:-1], ids[1:])))
        assert f"{float(torch.softmax(logits[-1].double(), -1).max()):.{decimals}f}" in words
    was, now = (f"{loss:.{decimals}f}" for loss in losses)
    assert f"{was} → {now}" in words


def test_a_translators_next_tokens_are_of_the_language_that_it_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = load_model("translate-en-fr")
    source = model.tokenizer
    assert isinstance(source, WordTokenizer)
    ends = {"start": source.words[source.start or 0], "end": source.words[source.end or 0]}
    written = WordTokenizer(
        [word if word in ends.values() else f"fr-{word}" for word in source.words], **ends
    )
    pair = Model(model.name, model.module, source, model.device, target_tokenizer=written)
    trace = model.trace("the black cat sleeps")
    look = SimpleNamespace(trace=trace, baseline=None, model=pair)
    drawn: list[str] = []
    monkeypatch.setattr("viz.views.home.outcome.st.html", drawn.append)
    outcome(look, hero(trace.attention[0], trace, None))  # type: ignore[arg-type]
    rows = re.findall(r'scope="row">([^<]*)<', drawn[0])
    likely = trace.require_prediction().after(-1).argsort()[::-1][: len(rows)]
    expected = [token_label(written.words[id_], LABEL) for id_ in likely]
    assert [html.unescape(row) for row in rows] == expected


def test_how_sure_the_model_was_of_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "viz.views.home.explore.outcome", lambda look, hero: seen.append(hero), raising=True
    )
    visit("home", mask="none")
    hero = seen[-1]
    for name, change in (("before", Intervention()), ("after", UNMASKED)):
        logits, ids = logits_and_tokens(change)
        shares = torch.softmax(logits[:-1].double(), -1)[torch.arange(len(ids) - 1), ids[1:]]
        first, *rest = hero.sure[name]
        assert first is None
        np.testing.assert_allclose(rest, shares, atol=1e-6)
    assert hero.change == "No mask"


def toggles(app: AppTest) -> list[str]:
    return [one.label.split()[0] for one in app.toggle]


@pytest.mark.parametrize("detail", ["simple", "full"])
def test_all_three_switches_are_always_there(detail: str) -> None:
    app = visit("home", detail=detail)
    assert toggles(app) == ["Hide", "Divide", "Use"]
    app.toggle[0].set_value(False).run()
    assert toggles(app) == ["Hide", "Divide", "Use"]
    assert app.toggle[2].label == "Use head L1H7"
    app.toggle[2].set_value(False).run()
    assert app.session_state["view"].intervention == Intervention(
        mask="none", ablated=frozenset({("decoder.1.self", 7)})
    )


def test_a_switch_that_changes_nothing_in_a_model_is_off() -> None:
    hides, divides, uses = visit("home", model="minilm").toggle
    assert (hides.value, divides.value, uses.value) == (False, True, True)
    assert not hides.disabled
    hides.set_value(True).run()


def test_what_moved_most_stands_first_and_what_is_printed_the_same_is_no_news() -> None:
    app = visit("home", ablated="decoder.1.self:7,decoder.0.self:2", text="Tom Hill saw Tom")
    (drawn,) = [one.value for one in app.get("html") if "<table" in one.value]
    rows = re.findall(r"<tr>.*?</tr>", drawn)
    pairs = [[float(number) for number in re.findall(r"--share:([0-9.]+)", row)] for row in rows]
    moved = [abs(now - was) for was, now in pairs]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 0.01
    same = visit(
        "home", mask="none"
    )  # the last token sees all tokens before it, with a mask or without
    (drawn,) = [one.value for one in same.get("html") if "<table" in one.value]
    assert "<small>was" not in drawn


def test_the_job_of_a_head_is_that_of_the_shipped_profile() -> None:
    model = load_model("house-gpt")
    profile = profile_of(model)
    row = profile.given.query("layer == 'decoder.1.self' and head == 7").iloc[0]
    words = job_of(model, ("decoder.1.self", 7))
    for number in (row["score"], row["control"], abs(row["left_out"])):
        assert f"{number:.2f}" in words
    unknown = next(
        head
        for head in range(8)
        if ("decoder.2.self", head)
        not in set(profile.given[["layer", "head"]].itertuples(index=False, name=None))
    )
    assert job_of(model, ("decoder.2.self", unknown)) == ""
    assert job_of(load_model("all-stages"), ("decoder.0.self", 0)) == ""


def test_an_example_keeps_the_readers_detail() -> None:
    app = visit("home", detail="full")
    example = next(box for box in app.selectbox if box.label == "Examples")
    example.set_value(example.options[1]).run()
    view = app.session_state["view"]
    assert view.text != View().text
    assert view.detail == "full"
    assert app.query_params["detail"] == "full"


def test_another_head_is_chosen_among_the_same_maps() -> None:
    app = visit("home")
    (heads,) = app.session_state["head-picker-heads"].values()
    app.session_state["view"] = replace(app.session_state["view"], head=2)
    app.run()
    assert [*app.session_state["head-picker-heads"].values()][-1] is heads
    app.toggle[0].set_value(False).run()
    assert [*app.session_state["head-picker-heads"].values()][-1] is not heads
    app.toggle[0].set_value(True).run()
    assert [*app.session_state["head-picker-heads"].values()][-1] is heads


def test_the_ways_from_a_cell_lead_to_the_same_run() -> None:
    found = ways(View(text="Anna saw Tom", head=3, intervention=UNMASKED))
    for address in found.values():
        view, problems = from_link(dict(parse_qsl(urlsplit(address).query)))
        assert not problems
        assert (view.text, view.intervention) == ("Anna saw Tom", UNMASKED)
    assert set(ways(View(text="\u4f60 " * 4_000)).values()) == {"/"}


def test_an_encoder_has_no_loss_and_no_sure_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("viz.views.home.explore.outcome", lambda look, hero: seen.append(hero))
    visit("home", model="minilm")
    assert seen[-1].loss is None
    assert seen[-1].sure is None
