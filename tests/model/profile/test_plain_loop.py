"""Every number of a profile is that of a plain loop over traces, and its examples are the true maxima."""

from pathlib import Path

import numpy as np
import pytest

from model import Trace
from model.analysis.attribution.score_parts import edge_values
from model.analysis.heads import statistics
from model.analysis.heads.contributions import parts_of_logit
from model.analysis.heads.statistics import heads_of
from model.profile import Profile, profile
from model.profile.examples import KEPT
from model.profile.sums import MAP
from model.profile.token_classes import CLASSES, DELIMITERS, token_classes
from tests.cases import cases
from tests.model.profile.sentences import SENTENCES, WINDOW, rows, traces
from tests.model.tiny import loaded

FEW = 2 * KEPT  # sentences where each edge is computed alone


def mean(found: list[tuple[float, int]]) -> float:
    """Sums and the rows that gave them, as one mean; NaN without rows."""
    count = sum(count for _, count in found)
    return sum(total for total, _ in found) / count if count else np.nan


@pytest.mark.slow
@cases("name", ["house-gpt", "minilm"])
def test_shares_entropy_and_distance_are_those_of_a_plain_loop(
    name, whole: Profile, corpus: Path
) -> None:
    is_known = name == "house-gpt"
    heads = (whole if is_known else profile(name, corpus, by_line=True, window=WINDOW)).heads
    for at, (place, head) in rows(name):
        found = heads.iloc[at]
        assert (found["layer"], found["head"]) == (place, head)
        weights = [trace.find(place).weights(head).astype(np.float64) for trace in traces(name)]
        every = sum(len(one) for one in weights)
        for share, offset in (("self", 0), ("previous", -1), ("next", 1)):
            if name == "house-gpt" and share == "next":  # no row may look ahead
                assert np.isnan(found[share])
                continue
            diagonals = [np.diagonal(one, offset) for one in weights]
            assert found[share] == pytest.approx(np.concatenate(diagonals).mean(), abs=1e-5)
        first = np.concatenate([one[1:, 0] for one in weights]).mean()
        assert found["first"] == pytest.approx(first, abs=1e-5)
        entropy = np.concatenate([statistics.entropy(one) for one in weights]).mean()
        assert found["entropy"] == pytest.approx(entropy, abs=1e-5)
        apart = sum(statistics.distance(one) * one.sum() for one in weights) / every
        assert found["distance"] == pytest.approx(apart, rel=1e-5, abs=1e-5)


@pytest.mark.slow
def test_induction_and_the_same_token_count_the_rows_that_could_give_them(whole: Profile) -> None:
    heads = whole.heads
    for at, (place, head) in rows("house-gpt"):
        induction, same = [], []
        for trace in traces("house-gpt"):
            weights = trace.find(place).weights(head)
            ids = np.array([token.id for token in trace.tokens])
            earlier = np.tril(ids[:, None] == ids, -1)
            copied = np.zeros_like(earlier)
            copied[:, 1:] = earlier[:, :-1]
            copied &= np.tril(np.ones_like(copied), -2)
            for cells, kept in ((copied, induction), (earlier, same)):
                kept.append((float(weights[cells].sum()), int(cells.any(1).sum())))
        assert heads["induction"][at] == pytest.approx(mean(induction), abs=1e-5)
        assert heads["same"][at] == pytest.approx(mean(same), abs=1e-5)


def test_weight_by_distance_by_class_and_the_mean_map_are_those_of_a_plain_loop(
    whole: Profile,
) -> None:
    kinds = [token_classes(trace.tokens) for trace in traces("house-gpt")]
    marks = [CLASSES.index("punctuation")]
    delimiters = [CLASSES.index(name) for name in DELIMITERS]
    for at, head in rows("house-gpt"):
        every = [
            trace.find(head[0]).weights(head[1]).astype(np.float64) for trace in traces("house-gpt")
        ]
        count = sum(len(one) for one in every)
        back = [sum(np.diagonal(one, -far).sum() for one in every) / count for far in range(WINDOW)]
        assert whole.by_distance(head)[WINDOW - 1 :] == pytest.approx(back, abs=1e-5)
        assert not whole.by_distance(head)[: WINDOW - 1].any()
        for name, wanted in (("punctuation", marks), ("delimiter", delimiters)):
            found = [
                given(one, np.isin(kind, wanted)) for one, kind in zip(every, kinds, strict=True)
            ]
            assert whole.heads[name][at] == pytest.approx(mean(found), abs=1e-5, nan_ok=True)
        sums, counts = np.zeros((len(CLASSES), len(CLASSES))), np.zeros(len(CLASSES))
        for one, kind in zip(every, kinds, strict=True):
            np.add.at(sums, (kind[:, None], kind), one)
            np.add.at(counts, kind, 1)
        shares = sums / np.where(counts, counts, np.nan)[:, None]
        assert whole.by_class(head).to_numpy() == pytest.approx(shares, abs=1e-5, nan_ok=True)
        maps = [pooled(one) for one in every if len(one) >= MAP]
        assert whole.mean_map(head) == pytest.approx(np.mean(maps, 0), abs=1e-5)


def given(weights: np.ndarray, wanted: np.ndarray) -> tuple[float, int]:
    """What the rows of a causal head give to some keys, and the rows that may look at one."""
    return float(weights[:, wanted].sum()), int(np.logical_or.accumulate(wanted).sum())


def pooled(weights: np.ndarray) -> np.ndarray:
    """The mean of each of 16 × 16 parts, which share a row or a column where they do not divide evenly."""
    ends = [
        (part * len(weights) // MAP, -(-(part + 1) * len(weights) // MAP)) for part in range(MAP)
    ]
    return np.array([[weights[a:b, c:d].mean() for c, d in ends] for a, b in ends])


def test_across_two_texts_each_query_is_another_token_than_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("the cat sleeps")
    heads = profile("translate-en-fr", file, by_line=True).heads
    trace = loaded("translate-en-fr").trace("the cat sleeps")
    for place, head in heads_of(trace.attention):
        found = heads[(heads["layer"] == place) & (heads["head"] == head)]["first"].item()
        queries = slice(int(trace.find(place).kind != "cross"), None)
        assert found == pytest.approx(trace.find(place).weights(head)[queries, 0].mean(), abs=1e-5)


@pytest.fixture(scope="module")
def few(corpus: Path) -> Profile:
    return profile("house-gpt", corpus, by_line=True, window=WINDOW, most_windows=FEW)


def test_what_is_carried_and_its_examples_are_those_of_single_edges(few: Profile) -> None:
    model = loaded("house-gpt")
    for at, (place, head) in list(rows("house-gpt"))[::5]:
        norms = [
            edge_values(model, trace, place, head).norms for trace in traces("house-gpt")[:FEW]
        ]
        carried = sum(one.sum() for one in norms) / sum(map(len, norms))
        assert few.heads["carried"][at] == pytest.approx(carried, rel=1e-5)
        best = sorted(one.max() for one in norms)[: -KEPT - 1 : -1]
        assert few.examples((place, head), "carried")["score"].to_numpy() == pytest.approx(best)


def test_the_effect_on_the_next_token_and_its_examples_are_those_of_single_heads(
    few: Profile,
) -> None:
    found = [effects(trace) for trace in traces("house-gpt")[:FEW]]
    means = np.concatenate(found, 1).mean(1)
    assert few.heads["effect"].to_numpy() == pytest.approx(means, abs=1e-5)
    for at, head in rows("house-gpt"):
        best = sorted(one[at].max() for one in found)[: -KEPT - 1 : -1]
        assert few.examples(head, "effect")["score"].to_numpy() == pytest.approx(best, abs=1e-4)


def effects(trace: Trace) -> np.ndarray:
    """(head, position): on the logit of the token that comes next, above that on the mean logit."""
    model, found = loaded("house-gpt"), []
    for position, follows in enumerate(trace.tokens[1:]):
        parts = parts_of_logit(model, trace, position, follows.id)
        found.append([part.effect for part in parts if part.kind == "head"])
    return np.array(found).T - on_the_mean_logit(trace)


def on_the_mean_logit(trace: Trace) -> np.ndarray:
    """(head, position): what the heads add to the mean logit, at all positions but the last."""
    model = loaded("house-gpt")
    row = model.embedding.astype(np.float64).mean(0)
    final = next(norm for norm in trace.norms if norm.name == "decoder.final.norm")
    row = row * final.gamma
    row = row - row.mean()
    found = []
    for attention in trace.attention:
        for head in range(attention.heads):
            written = model.head_output(attention, head).astype(np.float64)[:-1]
            found.append(written @ row * final.inverse_deviation[:-1])
    return np.array(found)


def test_examples_are_the_true_maxima_each_from_another_window(whole: Profile) -> None:
    for _, (place, head) in rows("house-gpt"):
        best = []
        for trace in traces("house-gpt"):
            weights = trace.find(place).weights(head).copy()
            weights[:, 0] = 0
            np.fill_diagonal(weights, 0)
            best.append(float(weights.max()))
        examples = whole.examples((place, head), "weight")
        assert examples["score"].to_numpy() == pytest.approx(
            sorted(best)[: -KEPT - 1 : -1], abs=1e-6
        )
        assert examples["window"].is_unique
        for _, one in examples.iterrows():
            trace = traces("house-gpt")[one["window"]]
            assert one["text"] == SENTENCES[one["window"]]
            weight = trace.find(place).weights(head)[one["query"], one["key"]]
            assert one["weight"] == pytest.approx(weight, abs=1e-6)
