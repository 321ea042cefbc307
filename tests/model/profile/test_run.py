"""Runs of the profile: models that change, workers that die, and what ends a run."""

import re
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from model import load_model
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.profile import Profile, profile
from model.profile.engines.processes import _pool
from model.profile.slices import Slice, of_weights
from model.profile.sums import counted, whole
from model.profile.tables import ProfileScope
from model.run.model import Model
from model.run.tokenizers import GPT2Subset
from model.system.memory import OutOfMemoryError
from tests.cases import cases
from tools.training.publishing import save_asset

TEXT = "ab ba. " * 8
WINDOW = 8


def saved(folder: Path, seed: int) -> str:
    """A random model that reads bytes, in a folder."""
    torch.manual_seed(seed)
    tokenizer = GPT2Subset(range(0))
    config = TransformerConfig(
        "decoder", tokenizer.size, WINDOW, 8, 2, decoder_layers=1, d_mlp=16, activation="gelu_tanh"
    )
    save_asset(folder, Transformer(config), tokenizer, card={"title": "Small"})
    return str(folder)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text(TEXT)
    return file


def test_a_model_that_was_trained_again_is_profiled_with_its_new_weights(
    corpus: Path, tmp_path: Path
) -> None:
    before = profile(saved(tmp_path / "m", 0), corpus)
    after = profile(saved(tmp_path / "m", 1), corpus)
    elsewhere = profile(saved(tmp_path / "other", 1), corpus)
    assert after.about.weights == elsewhere.about.weights != before.about.weights
    assert after.heads["entropy"].tolist() == elsewhere.heads["entropy"].tolist()


def test_a_worker_refuses_a_model_that_changed_since_the_run_began(tmp_path: Path) -> None:
    name = saved(tmp_path / "m", 0)
    with pytest.raises(ValueError, match="have changed since the run began"):
        of_weights(name, "0" * 64)


@cases("written", [0, 11])
def test_a_window_is_left_out_where_the_decoder_writes_too_little_or_too_much(
    written, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("the cat sleeps")
    monkeypatch.setattr(
        Model, "_greedy", lambda self, tokens, limit: self.tokenizer.tokens("the " * written)
    )
    found = profile("translate-en-fr", file, window=8)
    ((number, reason),) = found.about.skipped
    assert number == 0
    assert re.search(rf"decoder .*\b{written + 1} tokens", reason)
    assert found.sums.windows == 0


@pytest.mark.slow
def test_a_text_longer_than_the_window_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("hello")
    found = profile("minilm", file, window=2)  # [CLS] and [SEP] are fed with each word
    assert " 3 tokens" in found.about.skipped[0][1]


def test_a_line_that_the_tokenizer_refuses_is_left_out_and_the_rest_counts(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("a b c a b c\nc c a b\na b # c\nb c b c\n\n#")
    found = profile("induction", file, window=48)
    assert found.about.done == ((0, 4),)
    assert sorted(found.texts.values()) == ["a b c a b c\nc c a b", "b c b c"]
    assert [number for number, _ in found.about.skipped] == [1, 3]
    assert all("does not know “#”" in reason for _, reason in found.about.skipped)


def test_without_memory_the_run_ends_and_no_window_counts_as_done(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    name = saved(tmp_path / "m", 0)
    monkeypatch.setattr(Transformer, "forward", full)
    with pytest.raises(OutOfMemoryError):
        profile(name, corpus)


@cases("number", [float("nan"), float("inf"), -float("inf"), 2.0**40])
def test_numbers_that_int64_cannot_hold_are_refused(number) -> None:
    with pytest.raises(ValueError, match="not finite, or too large"):
        counted(whole(torch.tensor([1.0, number]), 30))


def test_a_window_whose_weights_are_no_numbers_is_left_out_with_the_reason(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(saved(tmp_path / "m", 0))
    model.module.embedding.tokens.weight.fill_(float("nan"))
    monkeypatch.setattr("model.profile.run.load_model", lambda name: model)
    found = profile("m", corpus, most_windows=2)
    assert found.sums.windows == 0
    assert ["not finite" in reason for _, reason in found.about.skipped] == [True, True]


def test_shares_are_means_over_the_rows_that_may_look_at_such_a_key(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("abc.")
    name = saved(tmp_path / "m", 0)
    heads, trace = profile(name, file).heads, load_model(name).trace("abc.")
    for head in range(2):
        weights = trace.attention[0].weights(head)
        assert heads["punctuation"][head] == pytest.approx(weights[-1, -1], abs=1e-6)
        assert heads["previous"][head] == pytest.approx(np.diagonal(weights, -1).mean(), abs=1e-6)
    for share in ("next", "delimiter", "same", "induction"):
        assert heads[share].isna().all()


class Workers:
    """A pool in this process. It breaks, with all that is under way, where it takes a deadly window."""

    def __init__(self, deaths: dict[int, int]) -> None:
        self._deaths, self.broken = deaths, False  # how often each window is still deadly

    def submit(
        self, work: Callable[[Slice, ProfileScope], Profile], one: Slice, about: ProfileScope
    ) -> Future[Profile]:
        future = UnderWay(self)
        if self._deaths.get(one.first, 0) > 0:
            self._deaths[one.first] -= 1
            self.broken = True
        future.set_result(work(one, about))
        return future


def in_this_process(workers: int) -> AbstractContextManager[Workers]:
    return nullcontext(Workers({}))


class UnderWay(Future[Profile]):
    """What nobody has fetched yet is lost where its pool breaks."""

    def __init__(self, pool: Workers) -> None:
        super().__init__()
        self._pool = pool

    def result(self, timeout: float | None = None) -> Profile:
        if self._pool.broken:
            raise BrokenProcessPool
        return super().result(timeout)


@pytest.mark.parametrize("times", [1, 2, 99])
def test_only_the_windows_that_end_their_process_are_blamed(
    times: int, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = {3: times}
    name = saved(tmp_path / "m", 0)
    monkeypatch.setattr("model.profile.slices.SLICE", 1)
    monkeypatch.setattr(
        "model.profile.engines.processes._pool", lambda workers: nullcontext(Workers(deaths))
    )
    if times == 99:
        with pytest.raises(ValueError, match="windows 3 to 3 have ended"):
            profile(name, corpus, workers=2)
    else:
        found = profile(name, corpus, workers=2)
        assert found.heads.equals(profile(name, corpus).heads)


def test_a_stop_cancels_what_no_worker_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, bool]] = []
    monkeypatch.setattr(
        "model.profile.engines.processes.ProcessPoolExecutor.shutdown",
        lambda self, **how: asked.append(how),
    )
    with pytest.raises(KeyboardInterrupt), _pool(1):
        raise KeyboardInterrupt
    assert asked == [{"cancel_futures": True}]
