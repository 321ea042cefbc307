"""Models on disk: what is saved comes back; what is missing, damaged or untrue gets a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from model import load_model, models
from model.loading.shipped import DamagedError, checkpoint_file, load_asset
from model.run import tokenizers
from model.run.tokenizers import GPT2Subset, tokenizer_from
from model.system.files import file_hash
from model.system.settings import settings
from tests.cases import cases
from tests.harm import change_one_bit, cut_short
from tests.model.tiny import SENTENCE, TINY, build
from tools.training.publishing import save_asset

Damage = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny model as it ships, with one checkpoint."""
    return saved("gpt", tmp_path / "tiny")


def saved(name: str, folder: Path) -> Path:
    model = build(name)
    start = {key: torch.zeros_like(value) for key, value in model.module.state_dict().items()}
    save_asset(folder, model.module, model.tokenizer, card={"loss": 1.5}, checkpoints={20: start})
    return folder


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def rehash(folder: Path) -> None:
    """As if the damage had been there when the files were written."""
    listed = json.loads((folder / "sha256.json").read_text())
    hashes = {name: file_hash(folder / name) for name in listed if (folder / name).is_file()}
    (folder / "sha256.json").write_text(json.dumps(hashes))


@cases("name", TINY)
def test_what_is_saved_comes_back_in_half_precision(name, tmp_path: Path) -> None:
    folder = str(saved(name, tmp_path / "copy"))
    before, after = build(name), load_model(folder, device="cpu")
    assert after.name == folder  # as it is asked for, by a link too
    assert after.config == before.config
    for key, weight in before.module.state_dict().items():
        loaded = after.module.state_dict()[key]
        assert loaded.dtype == torch.float32
        torch.testing.assert_close(loaded, weight.half().float(), atol=0, rtol=0)
    ids = [[token.id for token in model.tokens(SENTENCE)] for model in (before, after)]
    assert ids[0] == ids[1]
    assert after.trace(SENTENCE).check() < 1e-5


def test_the_card_and_each_checkpoint_come_back(folder: Path) -> None:
    module, _, card = load_asset(folder)
    assert card == {"loss": 1.5}
    early, _, _ = load_asset(folder, checkpoint_file(20))
    assert all((parameter == 0).all() for parameter in early.parameters())
    assert any((parameter != 0).any() for parameter in module.parameters())
    assert not any(parameter.requires_grad for parameter in module.parameters())


DAMAGES: dict[str, Damage] = {
    "no weights": lambda f: (f / "model.safetensors").unlink(),
    "no config": lambda f: (f / "config.json").unlink(),
    "no tokenizer": lambda f: (f / "tokenizer.json").unlink(),
    "no card": lambda f: (f / "card.json").unlink(),
    "no hashes": lambda f: (f / "sha256.json").unlink(),
    "hashes of nothing": lambda f: (f / "sha256.json").write_text("{}"),
    "hashes that are a list": lambda f: (f / "sha256.json").write_text("[1]"),
    "truncated weights": lambda f: cut_short(f / "model.safetensors"),
    "tampered weights": lambda f: change_one_bit(f / "model.safetensors"),
    "empty weights": lambda f: (f / "model.safetensors").write_bytes(b""),
    "tampered config": lambda f: rewrite(f / "config.json", heads=4),
    "tampered tokenizer": lambda f: rewrite(f / "tokenizer.json", end=None),
    "truncated config": lambda f: cut_short(f / "config.json"),
    "a config that is a list": lambda f: (f / "config.json").write_text("[]"),
    "a config in another encoding": lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"),
    "a folder in place of a file": lambda f: (
        (f / "card.json").unlink(),
        (f / "card.json").mkdir(),
    ),
}
UNTRUE: dict[str, Damage] = {
    "truncated weights": lambda f: cut_short(f / "model.safetensors"),
    "a header of nonsense": lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 64),
    "weights of another model": lambda f: safetensors.torch.save_file(
        {"weight": torch.ones(3)}, f / "model.safetensors"
    ),
    "another width": lambda f: rewrite(f / "config.json", d_model=48),
    "more layers": lambda f: rewrite(f / "config.json", decoder_layers=3),
    "fewer layers": lambda f: rewrite(f / "config.json", decoder_layers=1),
    "another norm": lambda f: rewrite(f / "config.json", norm="rms"),
    "no biases": lambda f: rewrite(f / "config.json", qkv_bias=False),
    "an absurd vocabulary": lambda f: rewrite(f / "config.json", d_vocab=10**13),
    "an absurd context": lambda f: rewrite(f / "config.json", n_ctx=10**13),
    "heads that do not fit": lambda f: rewrite(f / "config.json", heads=7),
    "a width in letters": lambda f: rewrite(f / "config.json", d_model="24"),
    "a width that is true": lambda f: rewrite(f / "config.json", d_mlp=True),
    "a width of 2**64": lambda f: rewrite(f / "config.json", d_mlp=2**64),
    "an unknown shape": lambda f: rewrite(f / "config.json", shape="mixture"),
    "an unknown field": lambda f: rewrite(f / "config.json", clocks=8),
    "a missing field": lambda f: (f / "config.json").write_text('{"shape": "decoder"}'),
    "an unknown tokenizer": lambda f: rewrite(f / "tokenizer.json", kind="magic"),
    "a shorter list of words": lambda f: rewrite(f / "tokenizer.json", words=["<start>", "<end>"]),
    "words that are numbers": lambda f: rewrite(f / "tokenizer.json", words=[1, 2]),
    "a start that is no word": lambda f: rewrite(f / "tokenizer.json", start="<begin>"),
    "tokens beyond GPT-2's": lambda f: (f / "tokenizer.json").write_text(
        '{"kind": "gpt2-subset", "kept": [60000]}'
    ),
    "tokens that are letters": lambda f: (f / "tokenizer.json").write_text(
        '{"kind": "gpt2-subset", "kept": ["a"]}'
    ),
}


def assert_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].* .*\.$") as refusal:
        load_model(str(folder), device="cpu")
    assert type(refusal.value) in (ValueError, DamagedError)  # no library's own kind gets through
    assert "tiny" in str(refusal.value)


@cases("damage", DAMAGES)
def test_a_damaged_model_is_refused_with_a_sentence(damage, tmp_path: Path) -> None:
    folder = saved("gpt", tmp_path / "tiny")
    DAMAGES[damage](folder)
    assert_refused(folder)


@cases("lie", UNTRUE)
def test_files_that_do_not_fit_each_other_are_refused_with_a_sentence(lie, tmp_path: Path) -> None:
    folder = saved("gpt", tmp_path / "tiny")
    UNTRUE[lie](folder)
    rehash(folder)
    assert_refused(folder)


def test_a_checkpoint_is_checked_as_the_model_is(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"checkpoints/000021.*missing"):
        load_asset(folder, checkpoint_file(21))
    change_one_bit(folder / checkpoint_file(20))
    with pytest.raises(ValueError, match=r"checkpoints/000020.*damaged"):
        load_asset(folder, checkpoint_file(20))


def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path) -> None:
    model = build("gpt")
    model.module.embedding.tokens.weight.data[0, 0] = 1e9  # beyond half precision
    with pytest.raises(ValueError, match=r"embedding\.tokens\.weight"):
        save_asset(tmp_path / "x", model.module, model.tokenizer, card={})


@cases("name", ["gpt5", "", " ", "a\x00b", "x" * 5000, "\ud800", "<script>", "stories/.."])
def test_an_unknown_model_is_refused_with_the_names_there_are(name) -> None:
    with pytest.raises(ValueError, match=r"There is no model") as refusal:
        load_model(name)
    message = str(refusal.value)
    assert all(known in message for known in models)
    assert len(message) < 600
    message.encode()


def test_where_no_folder_may_be_opened_none_is_told_from_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "someone" / "private").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    of_the_hub = settings().model_copy(update={"folders": False, "other_models": True})
    monkeypatch.setattr("model.loading.registry.settings", lambda: of_the_hub)
    for name in ("someone/private", "someone/absent"):
        entry = models.found(name)
        assert (entry.hub, entry.folder) == (name, None)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json .* is missing"):
        load_model(str(tmp_path))


@cases("damage", [change_one_bit, Path.unlink])
def test_a_damaged_vocabulary_is_refused_with_a_sentence(
    damage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / "vocabulary"
    copy.write_bytes(tokenizers.GPT2_VOCABULARY.read_bytes())
    damage(copy)
    monkeypatch.setattr(tokenizers, "GPT2_VOCABULARY", copy)
    tokenizers.gpt2.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"^GPT-2's vocabulary .*\.$"):
            GPT2Subset([])
    finally:
        tokenizers.gpt2.cache_clear()


def test_a_tokenizer_is_what_its_description_says() -> None:
    for name in ("gpt", "gpt-bytes"):
        tokenizer = build(name).tokenizer
        again = tokenizer_from(json.loads(json.dumps(tokenizer.description())))
        assert again.description() == tokenizer.description()
        assert np.array_equal(again.encode(SENTENCE), tokenizer.encode(SENTENCE))
        assert (again.start, again.end, again.size) == (
            tokenizer.start,
            tokenizer.end,
            tokenizer.size,
        )
