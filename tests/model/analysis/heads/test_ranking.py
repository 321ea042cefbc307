"""Heads ranked by what they look at: from full rows, over one family at a time."""

import numpy as np
import pytest

from model import Model, Trace
from model.analysis.heads import statistics
from model.analysis.heads.ranking import STATISTICS, looking, scores, separators
from model.analysis.heads.statistics import Family, families
from model.loading.shipped import ASSETS, load_asset
from model.trace.records import Token
from model.training.induction import repeat_accuracy, said_twice
from tests.cases import cases
from tests.model.tiny import loaded, run
from tools.training.__main__ import RECIPES

DECODER = Family("decoder", cross=False)
RELATIONS = {"previous", "self", "next", "induction", "distance"}


def test_every_head_belongs_to_one_family_whose_tokens_are_its_rows_and_columns(
    trace: Trace,
) -> None:
    found = families(trace)
    assert len(found) == (3 if trace.target_tokens else 1)
    named = [head for family in found for head in family.heads(trace)]
    assert len(named) == len(set(named)) == sum(one.heads for one in trace.attention)
    for family in found:
        shape = len(family.queries(trace)), len(family.keys(trace))
        assert {one.weights(0).shape for one in family.members(trace)} == {shape}


def test_each_score_is_the_statistic_of_that_heads_own_rows(trace: Trace) -> None:
    for family in families(trace):
        found = scores(trace, family)
        assert found.values.keys() | found.refused.keys() == {one.name for one in STATISTICS}
        for place, (name, head) in enumerate(found.heads):
            weights = trace.find(name).weights(head)
            rows = weights if family.cross else weights[1:]  # of another text all rows look at it
            assert found.values["first"][place] == pytest.approx(float(rows[:, 0].mean()))
            assert found.values["entropy"][place] == pytest.approx(
                statistics.entropy(weights).mean()
            )
            if not family.cross:
                assert found.values["previous"][place] == statistics.at_offset(weights, -1)
                assert found.values["distance"][place] == statistics.distance(weights)


def test_a_ranking_runs_from_the_highest_down(trace: Trace) -> None:
    found = scores(trace, families(trace)[0])
    for name, values in found.values.items():
        ranked = found.ranked(name)
        assert [value for _, value in ranked] == sorted(values, reverse=True)
        assert {head for head, _ in ranked} == set(found.heads)


def test_positions_of_two_different_texts_are_not_compared() -> None:
    trace = run(loaded("translator"))
    found = scores(trace, Family("decoder", cross=True))
    assert found.refused.keys() >= RELATIONS
    assert {"entropy", "first"} <= found.values.keys()


@cases("name", ["gpt", "encoder-rotary"])
def test_what_a_text_of_one_token_cannot_say_is_refused_and_no_number_is_missing(name) -> None:
    trace = loaded(name).trace("cat")
    found = scores(trace, families(trace)[0])
    assert {"previous", "next", "first", "induction"} <= found.refused.keys()
    assert all(reason.endswith(".") for reason in found.refused.values())
    assert all(np.isfinite(values).all() for values in found.values.values())


def test_separators_are_special_tokens_and_punctuation() -> None:
    texts = ["[CLS]", "Tom", ".", " ,", "…", "don't", "7", "é", " ", "##s"]
    tokens = [Token(0, text, special=text == "[CLS]") for text in texts]
    assert [token.text for token, is_one in zip(tokens, separators(tokens), strict=True) if is_one]
    assert separators(tokens).tolist() == [True, False, True, True, True] + [False] * 5


def test_heads_that_look_from_one_token_to_another_are_read_off_their_rows(trace: Trace) -> None:
    for family in families(trace):
        query, key = len(family.queries(trace)) - 1, 1
        found = looking(trace, family, query, key)
        for (name, head), value in zip(family.heads(trace), found, strict=True):
            weight = float(trace.find(name).weights(head)[query, key])
            assert value == pytest.approx(weight, rel=1e-5, abs=1e-7)


@cases("name", ["stories", "induction"])
def test_ablating_the_head_ranked_first_for_the_previous_token_ends_copying(name) -> None:
    module, tokenizer, _ = load_asset(ASSETS / name)
    task = RECIPES[name]().task
    words = getattr(task, "spaced_words", range(module.config.d_vocab))
    lists = said_twice(np.random.default_rng(5), words, count=32, period=12)
    trace = Model(name, module, tokenizer).trace(tokenizer.decode(lists[0].tolist()))
    assert [token.id for token in trace.tokens] == lists[0].tolist()
    (first, score), *_ = scores(trace, DECODER).ranked("previous")
    assert score > 0.9
    assert repeat_accuracy(module, lists) >= 0.95
    assert repeat_accuracy(module, lists, ablated=[first]) <= 0.2
    others = [head for head in DECODER.heads(trace) if head[0] == first[0] and head != first]
    assert max(repeat_accuracy(module, lists, ablated=[head]) for head in others) > 0.2
