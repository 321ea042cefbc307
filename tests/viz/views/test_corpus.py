"""Heads over a corpus: what the browser is sent are the profile's and the model's own numbers."""

from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from model.profile.tables import no_labels
from model.trace.arrays import Array
from tests.cases import cases
from tests.model.profile.synthetic import small_profile
from tests.model.tiny import loaded
from viz.explorer.packing import words
from viz.notation.head_labels import verdicts_in_words
from viz.state.link import from_link
from viz.views.corpus import examples
from viz.views.corpus.choice import plan_of
from viz.views.corpus.examples import CorpusExample, of_head, positions
from viz.views.corpus.views import percent, strongest

STORIES = "stories"


ROW = {
    "label": "names",
    "score": 0.61,
    "control": 0.12,
    "corpus": np.nan,
    "effect": -0.31,
    "effect_spread": 0.02,
    "effect_control": 0.004,
    "left_out": -2.81,
    "left_out_spread": 0.2,
    "left_out_control": 0.03,
    "measure": "logit",
    "does": "raises",
    "effect_reason": "",
}


@cases(
    "changed, said",
    [
        (
            {},
            "without it the name’s lead over the one that occurs twice falls by 2.81 ± 0.20 (control +0.03) "
            "→ the head raises it.",
        ),
        (
            {"left_out": np.nan, "does": "lowers"},
            "directly it adds −0.31 ± 0.02 to the name’s lead over the one that occurs twice (control +0.00) "
            "→ the head lowers it.",
        ),
        (
            {"left_out": 0.125, "measure": "moved", "does": "moves", "left_out_control": np.nan},
            "without it the last vectors there move by 0.12 ± 0.20 of their length → the head matters "
            "more here than elsewhere.",
        ),
        (
            {"measure": "moved", "does": "nothing", "left_out": 0.05},
            "without it the last vectors there move by 0.05 ± 0.20 of their length (other rows 0.03) → "
            "the head matters no more here than elsewhere.",
        ),
        ({"measure": "", "does": "", "effect_reason": "Why not."}, "not known. Why not."),
    ],
)
def test_a_label_is_told_with_both_verdicts(changed, said) -> None:
    looks = "Looks: 0.61 of the last token’s weight on the other name (control 0.12). Does: "
    assert verdicts_in_words(ROW | changed) == looks + said


def test_a_label_that_a_head_earns_by_what_it_does_comes_first() -> None:
    heads = small_profile().sums.heads[:1]
    rows = [(*heads[0], "first", 0.99), (*heads[0], "induction", 0.7)]
    asked = no_labels().reindex(range(2))
    for at, row in enumerate(rows):
        asked.loc[at, ["layer", "head", "label", "score"]] = row
    asked = asked.assign(given=True, head=asked["head"].astype(int), does="raises")
    profile = replace(small_profile(), asked=asked)
    assert profile.label(heads[0]) == "induction"
    assert replace(profile, asked=asked.assign(does="nothing")).label(heads[0]) == "first"
    assert profile.given["earned"].tolist() == [True, False]


def test_an_example_has_the_weights_of_its_row_and_its_link_leads_to_the_same_weight() -> None:
    profile, model = small_profile(), loaded(STORIES)
    head = profile.sums.heads[-1]
    found = of_head(head, profile.examples(head, "carried"), "carried")
    said = words(examples.message("title", found, model, runs=True))
    assert len(said["examples"]) == len(found) > 1  # type: ignore[arg-type]
    for one, sent in zip(found, said["examples"], strict=True):  # type: ignore[call-overload]
        link = dict(parse_qsl(urlsplit(sent["href"]).query))
        view, problems = from_link(link)
        assert not problems
        trace = model.trace(view.text)
        weights = trace.find(view.place).weights(view.head)
        assert weights[view.query, view.key] == pytest.approx(one.weight, abs=1e-6)
        assert sent["row"][sent["shown"].index(view.key)] == pytest.approx(one.weight, abs=1e-6)
        row = [weights[view.query, at] for at in sent["shown"]]
        assert sent["row"] == pytest.approx(row, abs=1e-6)
        assert sum(sent["row"]) + sent["left"] == pytest.approx(1, abs=1e-5)
    below = words(examples.message("title", found, model, chance=found[:2], runs=True))
    assert below["chance"] == said["examples"][:2]  # type: ignore[index]
    unrun = words(examples.message("title", found, model, runs=False))
    assert [one["row"] for one in unrun["examples"]] == [None] * len(found)  # type: ignore[attr-defined]
    assert [one["tokens"] for one in unrun["examples"]] == [  # type: ignore[attr-defined]
        one["tokens"]
        for one in said["examples"]  # type: ignore[attr-defined]
    ]


def test_an_example_of_cross_attention_stands_before_what_it_looks_at() -> None:
    model = loaded("translate-en-fr")
    trace = model.trace("the black cat sleeps")
    (attention, *_) = [one for one in trace.attention if one.kind == "cross"]
    weights = attention.weights(0)
    key = int(weights[1].argmax())
    one = CorpusExample((attention.name, 0), "the black cat sleeps", 1, key, float(weights[1, key]))
    (sent,) = words(examples.message("", [one], model, runs=False))["examples"]  # type: ignore[misc]
    assert (sent["query"], sent["key"]) == (0, key + 1)
    assert sent["row"][1:] == pytest.approx(weights[1].tolist(), abs=1e-6)


def test_far_tokens_of_an_example_are_left_out() -> None:
    assert positions(200, 5, 256) == [*range(12), *range(194, 207)]
    assert positions(4, 2, 6) == list(range(6))


def test_the_strongest_cell_is_none_of_itself_and_not_of_the_first_token() -> None:
    class Head:
        kind = "causal"

    weights: Array = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.6, 0.15, 0.25]], np.float32)
    assert strongest(weights, Head()) == (2, 1)  # type: ignore[arg-type]
    assert strongest(np.eye(2, dtype=np.float32), Head()) == (0, 0)  # type: ignore[arg-type]
    assert [percent((share, share)) for share in (0.9996, 1.0, 0.29)] == [
        "99.9 %",
        "100.0 %",
        "29.0 %",
    ]
    assert percent((0.18803, 0.76607)) == "18.8 to 76.7 %"


def test_a_plan_refuses_what_cannot_be_profiled() -> None:
    model = loaded(STORIES)
    for text, why in (("  \n ", "no text yet"), ("x" * 200_001, "more than 200,000 bytes")):
        with pytest.raises(ValueError, match=why):
            plan_of(model, text, by_line=False, name="mine")
