"""Files that lie: whatever a folder claims, it is refused in a sentence, before memory is taken."""

import json
import os
import shutil
import signal
import tracemalloc
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from model import load_model
from model.hub import isolated_tokenizer
from model.loading.shipped import ASSETS
from model.system import processes
from tests.cases import cases
from tests.hostile.hostile_models import hostile_folder
from tests.hostile.lies import LIES, claims, device, multiplying, pipe, tokenizer
from tests.model.hub_models import saved

ENOUGH = 64_000_000  # bytes of Python's own memory that refusing may take


def copied(tmp_path: Path) -> Path:
    """A copy of a tiny Llama that a test may damage."""
    return shutil.copytree(saved("llama"), tmp_path / "copy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copied(tmp_path)


@cases("kind", LIES)
def test_files_that_lie_are_refused_in_a_sentence(kind, tmp_path: Path) -> None:
    folder, (lie, reason) = copied(tmp_path), LIES[kind]
    lie(folder)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=reason) as refused:
            load_model(str(folder), device="cpu")
        assert tracemalloc.get_traced_memory()[1] < ENOUGH
    finally:
        tracemalloc.stop()
    said = str(refused.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 600


def test_what_is_not_the_models_own_is_left_out_and_it_opens(folder: Path) -> None:
    """Labels of no head, code for attention, templates of chats, and files that no model needs."""
    claims(
        num_labels=10**9,
        _attn_implementation="some/kernel",
        attn_implementation="flash_attention_2",
    )(folder)
    described = json.loads((folder / "tokenizer_config.json").read_text())
    described["chat_template"] = "{{ bos_token }}" * 100_000
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    os.mkfifo(folder / "notes.txt")
    os.mkfifo(folder / "chat_template.jinja")
    (folder / "more.json").symlink_to("/dev/zero")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "some/body"}')
    model = load_model(str(folder), device="cpu")
    assert model.trace("the cat saw").check() < 1e-4


def test_a_number_that_makes_the_config_itself_large_is_a_claim(folder: Path) -> None:
    """Not left out by its name: tried, as any number beyond a million is."""
    from model.hub.config import grows_with

    described = json.loads((folder / "config.json").read_text()) | {"num_labels": 10**9}
    assert grows_with(described, "num_labels", {"num_labels": ""})
    assert not grows_with(described, "pad_token_id", {"num_labels": ""})


def test_a_text_that_a_tokenizer_would_make_endless_is_refused_and_the_next_is_read(
    folder: Path,
) -> None:
    tokenizer(normalizer=multiplying("z"))(folder)
    model = load_model(str(folder), device="cpu")
    with pytest.raises(ValueError, match=r"cannot read this \(.* GB of memory\)\.$"):
        model.trace("the zebra saw")
    assert [token.text for token in model.tokens("the cat saw")] == ["the", "cat", "saw"]


def test_a_tokenizer_that_stands_still_blocks_nobody_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(str(folder), device="cpu")
    apart = model.tokenizer._tokenizer._tokenizer  # type: ignore[attr-defined]
    stopped = apart._apart._process
    stopped.send_signal(signal.SIGSTOP)  # its own clock stands still too
    monkeypatch.setattr(isolated_tokenizer, "settings", lambda: SimpleNamespace(pass_seconds=0))
    monkeypatch.setattr(processes, "TO_END", 0)
    with pytest.raises(ValueError, match=r"cannot read this \(.* more than 0 seconds .*\)\.$"):
        model.tokens("the cat saw")
    assert stopped.returncode == -signal.SIGKILL
    monkeypatch.undo()
    assert [token.text for token in model.tokens("the cat saw")] == ["the", "cat", "saw"]


def test_a_tokenizer_that_nobody_asked_for_a_while_is_started_anew(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")
    apart = model.tokenizer._tokenizer._tokenizer._apart  # type: ignore[attr-defined]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, apart._process.stdin.fileno())  # it hears that nobody asks any more, and ends
    os.close(nowhere)
    assert apart._process.wait() == 0
    assert len(model.tokens("the cat saw")) == 3


@cases(
    "name, kind",
    product(["config.json", "tokenizer.json", "sha256.json", "model.safetensors"], [pipe, device]),
)
def test_an_own_folder_with_a_file_that_never_ends_is_refused(name, kind, tmp_path: Path) -> None:
    copy = shutil.copytree(ASSETS / "induction", tmp_path / "induction")
    kind(name)(copy)
    with pytest.raises(ValueError, match=r"is (damaged|missing)"):
        load_model(str(copy), device="cpu")


def test_a_token_without_a_vector_is_refused_when_it_is_typed(folder: Path) -> None:
    described = json.loads((folder / "tokenizer.json").read_text())
    described["model"]["vocab"]["zebra"] = 10**6
    (folder / "tokenizer.json").write_text(json.dumps(described))
    model = load_model(str(folder), device="cpu")
    assert model.trace("the cat saw").check() < 1e-4
    with pytest.raises(ValueError, match=r"no vector for the token 'zebra'.* 1,000,000.*\.$"):
        model.trace("the zebra saw")


def test_the_links_of_the_hubs_own_cache_are_followed(folder: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1234"
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(folder.iterdir()):
        shutil.copy(path, blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert load_model(str(snapshot), device="cpu").trace("the cat saw").check() < 1e-4


def test_tokens_that_are_attacks_are_tokens() -> None:
    trace = load_model(str(hostile_folder("llama")), device="cpu").trace("the <b>hx</b> cat **hx**")
    assert [token.text for token in trace.tokens] == ["the", "<b>hx</b>", "cat", "**hx**"]
    assert trace.check() < 1e-4
