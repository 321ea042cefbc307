"""A profile equals a plain loop over traces, and parts of it add up to the whole bit for bit."""

import errno
import multiprocessing
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model import Trace, load_model
from model.analysis.attribution.edge_values import edge_values
from model.analysis.heads import statistics
from model.analysis.heads.contributions import parts_of_logit
from model.analysis.heads.families import heads_of
from model.nn.places import Head
from model.profile import Profile, open_profile, profile
from model.profile.examples import KEPT
from model.profile.run import Progress
from tests.model.profile.sentences import SENTENCES, WINDOW
from tests.model.profile.test_run import in_this_process, saved

TEXT = "Nobody knew the house. Nobody knew the man who lived in the house. " * 12


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("corpus") / "sentences.txt"
    file.write_text("\n".join(SENTENCES))
    return file


@pytest.fixture(scope="module")
def whole(corpus: Path) -> Profile:
    found = profile("house-gpt", corpus, by_line=True, window=WINDOW)
    assert found.sums.windows == len(SENTENCES) == 204
    return found


@cache
def traces(name: str) -> list[Trace]:
    model = load_model(name)
    return [model.trace(sentence) for sentence in SENTENCES]


def rows(name: str) -> Iterator[tuple[int, Head]]:
    yield from enumerate(heads_of(traces(name)[0].attention))


def mean(found: list[tuple[float, int]]) -> float:
    """Sums and the rows that gave them, as one mean."""
    return sum(total for total, _ in found) / sum(count for _, count in found)


@pytest.mark.parametrize("name", ["house-gpt", "minilm"])
def test_shares_entropy_and_distance_are_those_of_a_plain_loop(
    name: str, whole: Profile, corpus: Path
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


def test_across_two_texts_each_query_is_another_token_than_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("the cat sleeps")
    heads = profile("translate-en-fr", file, by_line=True).heads
    trace = load_model("translate-en-fr").trace("the cat sleeps")
    for place, head in heads_of(trace.attention):
        found = heads[(heads["layer"] == place) & (heads["head"] == head)]["first"].item()
        queries = slice(int(trace.find(place).kind != "cross"), None)
        assert found == pytest.approx(trace.find(place).weights(head)[queries, 0].mean(), abs=1e-5)


def test_what_is_carried_and_the_effect_on_the_next_token_are_those_of_single_edges(
    corpus: Path,
) -> None:
    model = load_model("house-gpt")
    heads = profile("house-gpt", corpus, by_line=True, window=WINDOW, most_windows=1).heads
    trace = traces("house-gpt")[0]
    for at, (place, head) in list(rows("house-gpt"))[::5]:
        carried = edge_values(model, trace, place, head).norms
        assert heads["carried"][at] == pytest.approx(carried.sum() / len(carried), rel=1e-5)
    effects = np.zeros(len(heads))
    for position, follows in enumerate(trace.tokens[1:]):
        parts = parts_of_logit(model, trace, position, follows.id)
        effects += [part.effect for part in parts if part.kind == "head"]
    effects -= _on_the_mean_logit(trace)
    assert heads["effect"].to_numpy() == pytest.approx(effects / (len(trace.tokens) - 1), abs=1e-4)


def _on_the_mean_logit(trace: Trace) -> np.ndarray:
    """(head,): what the heads add to the mean logit, over all positions but the last."""
    model = load_model("house-gpt")
    row = model.embedding.astype(np.float64).mean(0)
    final = next(norm for norm in trace.norms if norm.name == "decoder.final.norm")
    row = row * final.gamma
    row = row - row.mean()
    found = []
    for attention in trace.attention:
        for head in range(attention.heads):
            written = model.head_output(attention, head).astype(np.float64)[:-1]
            found.append(float((written @ row * final.inverse_deviation[:-1]).sum()))
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


def test_parts_add_up_to_the_whole_bit_for_bit_and_so_does_what_was_stopped(
    whole: Profile, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.profile.slices.SLICE", len(SENTENCES) // 6)

    def stop(progress: Progress) -> None:
        if progress.windows >= len(SENTENCES) // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, told=stop)
    assert open_profile(tmp_path).about.done == ((0, len(SENTENCES) // 3),)
    counted: list[Progress] = []
    resumed = profile(
        "house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, told=counted.append
    )
    assert len(counted) == 4  # slices that were left
    assert_equal(resumed, whole)
    assert_equal(open_profile(tmp_path), whole)


def assert_equal(one: Profile, other: Profile) -> None:
    assert one.about == other.about
    assert one.labels.equals(other.labels)
    assert one.texts == other.texts
    assert np.array_equal(one.sums.examples.rows, other.sums.examples.rows)
    for name, numbers in one.sums.numbers.items():
        assert np.array_equal(numbers, other.sums.numbers[name]), name


def test_a_worker_that_is_killed_loses_no_window_and_none_counts_twice(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.profile.slices.SLICE", 1)
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        for worker in [] if killed else multiprocessing.active_children():
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)
            monkeypatch.setattr(
                "model.profile.engines.processes._pool", in_this_process
            )  # one start is enough

    name = saved(tmp_path / "m", 0)
    found = profile(name, corpus, by_line=True, most_windows=4, workers=1, told=kill)
    assert len(killed) == 1
    assert_equal(found, profile(name, corpus, by_line=True, most_windows=4))


def test_a_full_disk_leaves_the_profile_that_was_there(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.profile.slices.SLICE", len(SENTENCES) // 6)
    before = profile(
        "house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, most_windows=len(SENTENCES) // 3
    )
    write_table = pq.write_table

    def full(table: pa.Table, file: Path, **how: Any) -> None:
        if "layer" in table.column_names:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_table(table, file, **how)

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="No space left"):
        profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW)
    assert_equal(open_profile(tmp_path), before)
    monkeypatch.undo()
    profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW)
    assert len(list(tmp_path.iterdir())) == 4  # nothing of the old one is left


def test_windows_are_counted_once(corpus: Path) -> None:
    part = profile("house-gpt", corpus, by_line=True, window=WINDOW, most_windows=2)
    with pytest.raises(ValueError, match="twice"):
        part + part


def test_a_percentile_counts_the_weights_below(whole: Profile) -> None:
    head = ("decoder.1.self", 7)
    weights = [trace.find(head[0]).weights(head[1]) for trace in traces("house-gpt")]
    every = np.concatenate([one[np.tri(len(one), dtype=bool)] for one in weights])
    for weight in (0.001, 0.05, 0.4, 1.0):
        low, high = (every < weight / 1.1).mean(), (every <= weight * 1.1).mean()
        assert low <= whole.percentile(head, weight) <= high


def test_a_long_text_is_cut_into_windows_that_hold_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text(TEXT)
    found = profile("house-gpt", file, window=WINDOW)
    model = load_model("house-gpt")
    assert found.about.skipped == ()
    assert found.sums.tokens == pytest.approx(len(model.tokens(TEXT.strip())), rel=0.1)
    for text in found.texts.values():
        assert len(model.tokens(text)) <= WINDOW
        assert text in TEXT


def test_what_the_model_cannot_read_is_named_and_the_rest_counts(tmp_path: Path) -> None:
    file = tmp_path / "mixed.txt"
    file.write_text("the cat sat on the mat\n\nx\nthe dog saw the cat")
    found = profile("house-gpt", file, by_line=True, window=WINDOW)
    assert [number for number, _ in found.about.skipped] == [1]
    assert found.sums.windows == 2


def test_a_folder_with_another_profile_is_left_as_it_is(corpus: Path, tmp_path: Path) -> None:
    profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, most_windows=1)
    with pytest.raises(ValueError, match="another profile"):
        profile("house-gpt", corpus, tmp_path, by_line=True, window=8)


def test_a_damaged_profile_is_refused_with_a_sentence(corpus: Path, tmp_path: Path) -> None:
    profile("house-gpt", corpus, tmp_path, by_line=True, window=WINDOW, most_windows=1)
    (examples,) = tmp_path.glob("examples-*.parquet")
    examples.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        open_profile(tmp_path)
    with pytest.raises(ValueError, match="no profile"):
        open_profile(tmp_path / "elsewhere")
