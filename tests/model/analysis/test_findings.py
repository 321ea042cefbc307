"""The scan of one text: its findings are true, each by a computation of its own."""

import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model import Intervention, Model, Trace
from model.analysis import scan
from model.analysis.findings import MOST, OF_A_KIND, Finding, _Text, scanning
from model.analysis.run_comparison import losses
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded
from viz.state.link import from_link

TEXTS = {
    "house-gpt": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "minilm": "The animal didn't cross the street because it was too tired",
    "translate-en-fr": "the black cat sleeps",
}


def scanned(name: str) -> tuple[Model, Trace, tuple[Finding, ...]]:
    model = loaded(name)
    trace = model.trace(TEXTS[name], record="full")
    return model, trace, scan(model, trace)


def of_kind(findings: tuple[Finding, ...], kind: str) -> Finding:
    return next(one for one in findings if one.kind == kind)


def given(finding: Finding) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(finding.link).query))


@cases("name", TEXTS)
def test_there_are_at_most_ten_each_with_a_check_and_a_link_that_opens(name) -> None:
    _, trace, findings = scanned(name)
    assert 3 <= len(findings) <= MOST
    apart = [one.stands_out for one in findings]
    assert apart == sorted(apart, reverse=True)
    assert len({one.link for one in findings}) == len(findings)
    for one in findings:
        assert [other.kind for other in findings].count(one.kind) <= OF_A_KIND
        assert one.check < 1e-3 * max(1, abs(one.value))
        assert re.fullmatch(r"[“A-Za-z\d].*\d.*\.", one.sentence)
        view, problems = from_link(given(one))
        assert problems == ()
        assert (view.text, view.model) == (trace.text, name)


def test_the_head_that_the_text_needs_is_the_one_whose_loss_rises_most() -> None:
    model, trace, findings = scanned("house-gpt")
    before = losses(trace).mean()
    change = {}
    for attention in trace.attention:
        for head in range(attention.heads):
            without = Intervention(ablated=frozenset({(attention.name, head)}))
            after = losses(model.trace(trace.text, intervention=without)).mean()
            change[attention.name, head] = after - before
    place, head = max(change, key=lambda one: change[one])
    needed = next(one for one in findings if one.kind in ("needed", "looks"))
    assert (given(needed)["place"], int(given(needed)["head"])) == (place, head)
    assert needed.value == pytest.approx(change[place, head], abs=1e-3)
    lowers = of_kind(findings, "in the way")
    cell = given(lowers)["place"], int(given(lowers)["head"])
    assert lowers.value == pytest.approx(change[cell], abs=1e-3)
    assert lowers.value < 0


@cases("name", TEXTS)
def test_the_heads_that_rest_on_the_first_token_are_counted_row_by_row(name) -> None:
    _, trace, findings = scanned(name)
    means = [
        # all rows of another text; of the same one those after the first token
        one.weights(head)[one.kind != "cross" :, 0].mean()
        for one in trace.attention
        for head in range(one.heads)
    ]
    rest = of_kind(findings, "first token")
    assert rest.value == sum(mean > 0.5 for mean in means)
    assert f"of {len(means)} heads" in rest.sentence
    assert f" {max(means):.2f}." in rest.sentence


def test_what_an_edge_adds_and_what_a_number_does_are_as_the_sentence_says() -> None:
    model, trace, findings = scanned("house-gpt")
    number = of_kind(findings, "number")
    place, token, dimension, value = given(number)["stream"].split(":")
    gone = Intervention(stream=frozenset({(place, int(token), int(dimension), float(value))}))
    after = losses(model.trace(trace.text, intervention=gone)).mean()
    assert f"to {after:.3g} nats" in number.sentence
    edge = of_kind(findings, "edge")
    (head,) = re.findall(r" in (L\dH\d)", edge.sentence)
    assert given(edge)["place"] == f"decoder.{head[1]}.self"
    assert int(given(edge)["head"]) == int(head[-1])
    assert f"{edge.value:+.2f}" in edge.sentence


def test_a_loss_rises_or_falls_only_where_its_printed_numbers_do() -> None:
    model = loaded("house-gpt")
    effects: Any = SimpleNamespace(measures=("loss",), unchanged={"loss": 5.312})
    text = _Text(model, model.trace(TEXTS["house-gpt"]), effects)
    for after, verb in ((5.312, "stays"), (5.3141, "stays"), (5.32, "rises"), (5.28, "falls")):
        said = text.moves(after)
        assert [word for word in ("stays", "rises", "falls") if word in said] == [verb]
        assert (f"{after:.3g}" == "5.31") == (verb == "stays")


def test_the_token_that_was_expected_least_has_the_largest_loss() -> None:
    model = loaded("house-gpt")
    trace = model.trace("Tom Hill saw a red ball. Anna gave the river to Tom", record="full")
    (*_, last) = scanning(model, trace)
    surprise = next((one for one in last.findings if one.kind == "surprise"), None)
    ids = torch.tensor([token.id for token in trace.tokens[1:]])
    own = F.cross_entropy(torch.tensor(trace.prediction.all[:-1]), ids, reduction="none").numpy()
    assert surprise.value == pytest.approx(own.max(), abs=1e-4)
    assert f"(token {own.argmax() + 1})" in surprise.sentence
    assert np.isfinite([one.stands_out for one in last.findings]).all()
    assert last.done == last.total == 32


@cases("family", ["gpt2", "bert", "t5", "mixtral", "gpt_oss", "gemma2", "mistral", "opt"])
def test_models_of_the_hub_are_scanned_as_far_as_they_are_proven(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model, record="full")
    for one in scan(model, trace):
        assert one.check < 1e-3 * max(1, abs(one.value))
        assert np.isfinite(one.stands_out)


def test_numbers_that_are_set_already_stay_set_while_others_are_tried() -> None:
    model = loaded("house-gpt")
    own = Intervention(stream=frozenset({("decoder.1.self", 0, 3, 5.0)}))
    trace = model.trace(TEXTS["house-gpt"], record="full", intervention=own)
    (*_, last) = scanning(model, trace)
    number = of_kind(last.findings, "number")
    place, token, dimension, value = given(number)["stream"].split(":")
    more = {(place, int(token), int(dimension), float(value))}
    after = losses(model.trace(trace.text, intervention=Intervention(stream=own.stream | more)))
    assert f"to {after.mean():.3g} nats" in number.sentence
    assert number.check < 1e-3
