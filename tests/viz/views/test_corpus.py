"""Heads over a corpus: what the browser is sent are the profile's and the model's own numbers."""

import json
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray

from model.profile.battery import KINDS
from model.profile.projection import FEATURES, HeadPlane, projected
from model.profile.tables import no_labels
from model.trace.arrays import Array
from tests.model.profile.synthetic import many_heads, small_profile
from tests.model.tiny import loaded
from viz.explorer.packing import words
from viz.notation.head_labels import verdicts_in_words
from viz.state.link import from_link
from viz.views.corpus import examples
from viz.views.corpus.choice import plan_of
from viz.views.corpus.examples import CorpusExample, of_head, positions
from viz.views.corpus.message import (
    COLUMNS,
    NO_LABEL,
    Label,
    ShownProfile,
    axes_in_words,
    curve,
    message,
)
from viz.views.corpus.views import labels_of_heads, percent, strongest

STORIES = "stories"


def array(block: bytes, said: object) -> NDArray[np.generic]:
    """An array of a message, from what its words say of it."""
    assert isinstance(said, dict)
    kind = {"floats": "<f4", "bytes": "|u1"}[said["kind"]]
    begins = 4 + int.from_bytes(block[:4], "little") + said["start"]
    return np.frombuffer(block, kind, said["count"], begins)


def shown(title: str, profile: object, label: str | None = None) -> ShownProfile:
    heads = len(profile.sums.heads)  # type: ignore[attr-defined]
    first = None if label is None else Label(label, "score 1.00")
    return ShownProfile(title, profile, (first, *[None] * (heads - 1)))  # type: ignore[arg-type]


def test_every_number_of_map_table_and_card_is_the_profiles_own() -> None:
    profile = small_profile()
    block = message([shown("stories", profile, "Induction")], 1)
    said = words(block)
    (sent,) = said["profiles"]  # type: ignore[misc]
    table = profile.heads
    for column in COLUMNS:
        arrived = array(block, sent["columns"][column.name])
        assert np.array_equal(arrived, table[column.name].astype("<f4"), equal_nan=True)
    assert np.isnan(array(block, sent["columns"]["next"])).all()  # no later token is allowed
    heads = profile.sums.heads
    places = array(block, sent["places"]).reshape(-1, 2)
    assert places == pytest.approx(projected([profile]).places[0], rel=1e-6)
    curves = array(block, sent["curves"]).reshape(len(heads), -1)
    maps = array(block, sent["maps"]).reshape(len(heads), 16, 16)
    most = array(block, sent["most"])
    classes = array(block, sent["classes"]).reshape(len(heads), -1)
    here = profile.sums.window - 1
    for at, head in enumerate(heads):
        weights = profile.by_distance(head)
        means = [weights[here + first : here + last + 1].mean() for first, last in sent["bins"]]
        assert curves[at] == pytest.approx(np.array(means), rel=1e-6)
        mean_map = profile.mean_map(head)
        assert most[at] == pytest.approx(mean_map.max(), rel=1e-6)
        assert np.abs(maps[at] / 255 * most[at] - mean_map).max() <= most[at] / 500
        assert np.array_equal(
            classes[at], profile.by_class(head).to_numpy().ravel().astype("<f4"), equal_nan=True
        )
    labels = array(block, sent["labels"])
    assert labels[0] == 0
    assert (labels[1:] == NO_LABEL).all()
    assert [one["name"] for one in said["labels"]] == ["Induction"]  # type: ignore[attr-defined]
    assert said["start"] == 1


def test_a_head_is_called_by_the_label_that_its_profile_gives() -> None:
    heads = small_profile().sums.heads[-2:]
    rows = [(*heads[0], "previous", 0.5), (*heads[0], "induction", 0.9), (*heads[1], "self", 0.8)]
    asked = no_labels().reindex(range(3))
    for at, row in enumerate(rows):
        asked.loc[at, ["layer", "head", "label", "score"]] = row
    asked = asked.assign(given=[True, True, False], control=np.nan, head=asked["head"].astype(int))
    asked = asked.assign(left_out=[-0.5, 0.4, np.nan], left_out_spread=0.1, left_out_control=0.02)
    asked = asked.assign(measure="logit", does=["raises", "lowers", ""], effect_reason="Why not.")
    profile = replace(small_profile(), asked=asked)
    labels = labels_of_heads(profile)
    titles = {kind.name: kind.title for kind in KINDS}
    assert [label and label.title for label in labels] == [
        titles.get(profile.label(head) or "") for head in profile.sums.heads
    ]
    said = (
        "Looks: 0.90 of a token’s weight on what followed it the first time. Does: without it the next "
        "token’s lead over the mean logit rises by 0.40 ± 0.10 (control +0.02) → the head lowers it."
    )
    assert labels[-2] == Label(titles["induction"], said, "but lowers it")


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


def test_a_label_is_told_with_both_verdicts(subtests: pytest.Subtests) -> None:
    for changed, said in [
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
    ]:
        with subtests.test(said=said):
            looks = (
                "Looks: 0.61 of the last token’s weight on the other name (control 0.12). Does: "
            )
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


@pytest.mark.slow
def test_the_points_of_a_curve_are_all_distances_once(subtests: pytest.Subtests) -> None:
    for model in [STORIES, "minilm"]:
        with subtests.test(model=model):
            profile = many_heads(5) if model == STORIES else small_profile(model)
            bins, points = curve(profile)
            distances = [distance for first, last in bins for distance in range(first, last + 1)]
            last = profile.sums.window - 1
            assert distances == list(range(0 if model == STORIES else -last, last + 1))
            lengths = [last - first + 1 for first, last in bins]
            assert (points * lengths).sum(1) == pytest.approx(np.ones(len(points)), abs=1e-4)


def test_the_axes_of_the_map_are_said_as_what_heads_do_more_or_less() -> None:
    loadings = np.zeros((2, len(FEATURES)))
    moved = {"log of the distance": -0.9, FEATURES[-1]: 0.3, "entropy": 0.2}
    for name, value in moved.items():
        loadings[0, FEATURES.index(name)] = value
    plane = HeadPlane((), (0.5, 0.0), loadings, ())
    across, up = axes_in_words(plane)
    assert across["words"] == f"shorter distances, more {FEATURES[-1]}, more entropy"
    assert up["words"] == "nothing"


def test_two_profiles_are_told_which_head_is_beside_which() -> None:
    one, other = many_heads(10), small_profile()
    said = words(message([shown("one", one), shown("other", other)], 0))
    ours, theirs = said["partners"]  # type: ignore[misc]
    assert (len(ours), len(theirs)) == (10, len(other.sums.heads))
    assert max(ours) < len(other.sums.heads)
    same = words(message([shown("one", one), shown("again", one)], 0))
    assert same["partners"] == [list(range(10))] * 2


def test_four_thousand_heads_fit_a_message() -> None:
    block = message([shown("many", many_heads(4000))], 0)
    assert len(block) < 4_500_000
    assert len(json.dumps(words(block))) < 200_000


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
