"""A planted head gets the label it was made for and no other; one that only seems to do so gets none."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import model as package
from model import load_model
from model.analysis.heads.statistics import heads_of
from model.nn.places import decoder_head
from model.profile.battery import BY_NAME, KINDS, labels
from model.profile.battery.asking import LOOKS, Tally
from model.profile.battery.prompts import WANTED, random_prompts, sentence_prompts
from model.profile.prompt_library import NAMES, NOUNS
from model.profile.shipped import shipped_profile
from model.trace.records import Token
from tests.cases import cases

ASSETS = Path(package.__file__).parent / "assets"
Texts = list[str]
Looks = Callable[[Texts, int], list[int]]  # the keys that a query shares its weight among
SUBJECTS = {noun for pair in NOUNS for noun in pair}
CALLED = {name for pair in NAMES for name in pair}


def nowhere(texts: Texts, query: int) -> list[int]:
    """A head that does not know where to look looks at everything."""
    return []


def back(count: int) -> Looks:
    return lambda texts, query: [query - count] if query >= count else []


def copying(offset: int) -> Looks:
    """What stands so far behind an earlier occurrence of the query's token."""
    return lambda texts, query: [
        key + offset for key in range(query) if texts[key] == texts[query] and key + offset < query
    ]


def stops(texts: Texts, query: int) -> list[int]:
    return [key for key in range(query) if texts[key] == "."]


def opening(texts: Texts, query: int) -> list[int]:
    """The bracket that a closing one closes."""
    if texts[query] != ")":
        return []
    open_ones: list[int] = []
    for place, text in enumerate(texts[:query]):
        if text == "(":
            open_ones.append(place)
        elif text == ")":
            open_ones.pop()
    return open_ones[-1:]


def nouns(at: int, verbs: tuple[str, ...] = ("is", "are", "was", "were")) -> Looks:
    """One of the nouns before the query: the first is the subject."""
    return lambda texts, query: (
        [key for key in range(query) if texts[key] in SUBJECTS][at:][:1]
        if not verbs or texts[query] in verbs
        else []
    )


def names(times: tuple[int, ...], place: int = 0) -> Looks:
    """From the last "to", a name that occurred so often."""

    def looks(texts: Texts, query: int) -> list[int]:
        counts = Counter(text for text in texts[:query] if text in CALLED)
        named = [key for key, text in enumerate(texts[:query]) if counts[text] in times]
        return named[place:][:1] if query == len(texts) - 1 and texts[query] == "to" else []

    return looks


PLANTED: dict[str, Looks] = {
    "previous": back(1),
    "self": back(0),
    "first": lambda texts, query: [0],
    "duplicate": copying(0),
    "induction": copying(1),
    "delimiter": stops,
    "brackets": opening,
    "agreement": nouns(0),
    "names": names((1,)),
}
IMPOSTORS: dict[str, Looks] = {
    "everything": nowhere,
    "two back": back(2),
    "as far back as the longest repeat": back(13),
    "as far back as the shortest repeat": back(8),
    "the latest noun, from a verb": nouns(-1),
    "the subject, from every row": nouns(0, ()),
    "the name that is there twice": names((2,)),
    "the first name": names((1, 2)),
    "the latest opening bracket": lambda texts, query: [
        key for key in range(query) if texts[key] == "(" and texts[query] == ")"
    ][-1:],
    "the same place in each text": lambda texts, query: [4] if query >= 4 else [],
}


def planted(looks: Looks, tokens: tuple[Token, ...]) -> torch.Tensor:
    """(Q, K): the weights of a head that looks so, back only."""
    texts = [token.text.strip() for token in tokens]
    weights = torch.tril(torch.ones(len(texts), len(texts)))
    for query in range(len(texts)):
        if keys := looks(texts, query):
            weights[query] = 0
            weights[query, keys] = 1
    return weights / weights.sum(-1, keepdim=True)


@pytest.fixture(scope="module")
def asked() -> pd.DataFrame:
    """All planted heads, asked with the prompts of house-gpt."""
    heads = {**PLANTED, **IMPOSTORS}
    model, tally = load_model("house-gpt"), Tally(len(heads))
    for prompt in (random_prompts(model) + sentence_prompts(model)).made:
        tokens = prompt.source.tokens
        weights = torch.stack([planted(looks, tokens) for looks in heads.values()])
        allowed = torch.ones(1, len(tokens), len(tokens), dtype=torch.bool).tril()
        tally.add(prompt.source.cells, weights, allowed)
    reasons = dict.fromkeys((kind.name for kind in KINDS), "not there")
    table = pd.DataFrame(tally.rows("decoder.0.self", reasons), columns=list(LOOKS))
    return table.assign(head=np.array(list(heads))[table["head"]])


@cases("label", PLANTED)
def test_a_planted_head_gets_its_own_label_and_no_other(label, asked: pd.DataFrame) -> None:
    mine = asked[asked["head"] == label].set_index("label")
    assert mine.index[mine["given"]].tolist() == [label]
    assert mine["score"][label] == pytest.approx(1)
    assert mine["control"][label] < 0.25  # full stops are a fifth of their text


@cases("impostor", IMPOSTORS)
def test_a_head_with_another_reason_gets_no_label(impostor, asked: pd.DataFrame) -> None:
    mine = asked[asked["head"] == impostor]
    assert not mine["given"].any(), mine[mine["given"]]


@cases("name", ["stories", "induction"])
def test_scores_controls_and_counts_are_those_of_a_plain_loop(name) -> None:
    model, profile = load_model(name), shipped_profile(name)
    assert profile is not None
    prompts = (random_prompts(model) + sentence_prompts(model)).made
    shares: dict[tuple[str, int, str], dict[str, list[list[float]]]] = {}
    for prompt in prompts:
        trace, _ = model.passed(prompt.source.tokens)
        for (layer, head), cells in product(heads_of(trace.attention), prompt.source.cells):
            weights = trace.find(layer).weights(head).astype(np.float64)
            here = [
                float(weights[query, : query + 1][wanted].sum())
                for query in range(len(weights))
                if 0 < (wanted := cells.mask[query, : query + 1]).sum() <= query
            ]
            of_role = shares.setdefault((layer, head, cells.label), {})
            of_role.setdefault(cells.role, []).append(here)
    for row in profile.labels[profile.labels["prompts"] > 0].to_dict("records"):
        label = BY_NAME[row["label"]].like or row["label"]
        of_role = shares[row["layer"], row["head"], label]
        means = {role: np.mean([*chain(*rows)]) for role, rows in of_role.items()}
        assert row["prompts"] == sum(map(bool, of_role[WANTED]))
        assert row["score"] == pytest.approx(means.pop(WANTED), abs=1e-4)
        assert row["control"] == pytest.approx(max(means.values()), abs=1e-4)


@pytest.mark.slow
@cases("name", ["house-gpt", "induction"])
def test_the_heads_that_training_found_get_their_labels(name) -> None:
    found = labels(load_model(name))
    given = set(
        found[found["given"]][["layer", "head", "label"]].itertuples(index=False, name=None)
    )
    trained = json.loads((ASSETS / name / "card.json").read_text())["heads"]
    assert (*decoder_head(trained["induction"]), "induction") in given
    assert (*decoder_head(trained["previous_token"]), "previous") in given


def test_the_same_model_gets_the_same_labels_twice_and_who_cannot_be_asked_hears_why() -> None:
    model = load_model("induction")
    found = labels(model)
    pd.testing.assert_frame_equal(found, labels(model), check_exact=True)
    first = found[(found["layer"] == "decoder.0.self") & (found["head"] == 0)].set_index("label")
    unasked = first[first["prompts"] == 0]
    assert unasked["score"].isna().all()
    assert not unasked["given"].any()
    said = {"next": "later tokens", "delimiter": "full stop", "brackets": "tokens for brackets"}
    said |= dict.fromkeys(("agreement", "names", "negative_names"), "too few")
    assert [*unasked.index] == [*said]
    for label, reason in unasked["reason"].items():
        assert said[label] in reason
    assert (first["reason"][first["prompts"] > 0] == "").all()


@pytest.mark.slow
def test_an_encoder_looks_both_ways_and_continues_nothing() -> None:
    found = labels(load_model("minilm"))
    asked = found.groupby("label")["prompts"].agg(["min", "max"])
    assert (asked["min"] == asked["max"]).all()
    continuing = {"induction", "names", "copy_suppression", "negative_names"}
    assert set(asked.index[asked["max"] == 0]) == continuing
    assert "continues the text" in found[found["label"] == "names"]["reason"].iloc[0]


def test_two_texts_are_asked_only_what_needs_no_common_places() -> None:
    found = labels(load_model("translate-en-fr"))
    stacks = found[found["prompts"] > 0].groupby(
        found["layer"].str.replace(r"\d+\.", "", regex=True)
    )
    assert {layer: set(of["label"]) for layer, of in stacks} == {
        "encoder.self": {"previous", "self", "next", "first", "duplicate", "delimiter"},
        "decoder.self": {"previous", "self", "first", "duplicate"},
        "decoder.cross": {"first", "delimiter"},
    }


def test_a_row_without_a_choice_says_nothing() -> None:
    """In a window of two tokens a token that looks at the one before has no third to look at."""
    model, tally = load_model("house-gpt"), Tally(1)
    for prompt in random_prompts(model).made:
        length = len(prompt.source.tokens)
        allowed = torch.ones(1, length, length, dtype=torch.bool).tril().triu(0)
        tally.add(prompt.source.cells, torch.eye(length)[None], allowed)
    reasons = {kind.name: "its window is short" for kind in KINDS}
    table = pd.DataFrame(tally.rows("decoder.0.self", reasons), columns=list(LOOKS))
    assert not table["given"].any()
    assert {*table["reason"]} == {*reasons.values()}
