"""Files that lie: whatever a folder claims, it is refused in a sentence, before memory is taken."""

import json
import os
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import load_model
from model.loading.shipped import ASSETS
from tests.hostile.hostile_models import hostile_folder
from tests.model.hub_models import saved

Lie = Callable[[Path], object]
ANY = "cannot be shown"
ENOUGH = 64_000_000  # bytes of Python's own memory that refusing may take


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a tiny Llama that a test may damage."""
    return shutil.copytree(saved("llama"), tmp_path / "copy")


def claims(**settings: object) -> Lie:
    def lie(folder: Path) -> None:
        described = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(described | settings))

    return lie


def weight(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Lie:
    def lie(folder: Path) -> None:
        state = load_file(folder / "model.safetensors")
        state[name] = change(state[name].clone())
        save_file(state, folder / "model.safetensors", {"format": "pt"})

    return lie


def poisoned(number: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def poison(values: torch.Tensor) -> torch.Tensor:
        values.view(-1)[-1] = number
        return values

    return poison


def header(change: Callable[[dict[str, Any]], object]) -> Lie:
    """Changes the header of the weights, and leaves their bytes as they are."""

    def lie(folder: Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        described = json.loads(content[8 : 8 + length])
        change(described)
        written = json.dumps(described).encode()
        path.write_bytes(struct.pack("<Q", len(written)) + written + content[8 + length :])

    return lie


def stretched(described: dict[str, Any]) -> None:
    described["lm_head.weight"]["shape"] = [2**40, 2**40]


def overlapping(described: dict[str, Any]) -> None:
    named = sorted(set(described) - {"__metadata__"})
    described[named[0]] = described[named[1]]


def nested(name: str) -> Lie:
    return lambda folder: (folder / name).write_text('{"a":' * 100_000 + "1" + "}" * 100_000)


def text(name: str, content: str) -> Lie:
    return lambda folder: (folder / name).write_text(content)


def tokenizer(**parts: object) -> Lie:
    def lie(folder: Path) -> None:
        described = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps(described | parts))

    return lie


def pipe(name: str) -> Lie:
    """A file that waits for somebody to write into it."""

    def lie(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return lie


def device(name: str) -> Lie:
    """A link to what never ends."""

    def lie(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to("/dev/zero")

    return lie


def linked_outside(folder: Path) -> None:
    """The weights are a link to a file elsewhere."""
    moved = folder.parent / "elsewhere.safetensors"
    (folder / "model.safetensors").rename(moved)
    (folder / "model.safetensors").symlink_to(moved)


def indexed_outside(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere.safetensors")
    index = {"weight_map": {"lm_head.weight": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def index_of(weight_map: object) -> Lie:
    return text("model.safetensors.index.json", json.dumps({"weight_map": weight_map}))


BACKTRACKING = {
    "type": "Split",
    "pattern": {"Regex": "([a-zA-Z ,]+)+$"},
    "behavior": "Isolated",
    "invert": False,
}
DOUBLING = [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 45
BEGIN = {"SpecialToken": {"id": "<s>", "type_id": 0}}
MANY_TOKENS = {
    "type": "TemplateProcessing",
    "single": [*[BEGIN] * 1_000, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1] * 1_000, "tokens": ["<s>"] * 1_000}},
}
LIES: dict[str, tuple[Lie, str]] = {
    "a billion layers": (claims(num_hidden_layers=10**9), "num_hidden_layers is 1,000,000,000"),
    "a huge vocabulary": (claims(vocab_size=10**13), "vocab_size is"),
    "a huge width": (claims(hidden_size=10**12), "hidden_size is"),
    "more than digits can say": (claims(hidden_size=10**30), "more than 18 digits"),
    "negative layers": (claims(num_hidden_layers=-1), "num_hidden_layers is -1"),
    "a negative width": (claims(hidden_size=-48), "hidden_size is -48"),
    "no width": (claims(hidden_size=0), ANY),
    "no heads": (claims(num_attention_heads=0), ANY),
    "heads that do not divide": (claims(num_attention_heads=7), ANY),
    "sizes that are words": (claims(hidden_size="48", num_hidden_layers="many"), ANY),
    "sizes that are lists": (claims(num_attention_heads=[6]), ANY),
    "no sizes, so the library's own": (
        text("config.json", '{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}'),
        "its config describes",
    ),
    "an activation that is code": (claims(hidden_act="__import__('os')"), ANY),
    "a rotary base of nothing": (claims(rope_parameters={"rope_type": "none"}), ANY),
    "a nested config": (nested("config.json"), "is damaged"),
    "a nested tokenizer": (nested("tokenizer.json"), "tokenizer cannot be read"),
    "a nested index": (nested("model.safetensors.index.json"), "nested too deeply"),
    "an index of lists": (index_of([["model.safetensors"]]), "damaged"),
    "an index of numbers": (index_of({"a": 1}), "damaged"),
    "an index of another place": (indexed_outside, "outside its folder"),
    "a link to another place": (linked_outside, "outside its folder"),
    "an absolute place": (index_of({"a": "/etc/hostname.safetensors"}), "outside its folder"),
    "not a number": (weight("model.norm.weight", poisoned(float("nan"))), "not all finite"),
    "an infinite weight": (weight("lm_head.weight", poisoned(float("inf"))), "not all finite"),
    "a row no probe reads": (weight("model.embed_tokens.weight", poisoned(float("nan"))), "finite"),
    "another shape": (weight("lm_head.weight", lambda values: values[:3].contiguous()), "other sizes"),
    "a header of other shapes": (header(stretched), "damaged or cut short"),
    "a header that overlaps": (header(overlapping), "damaged or cut short"),
    "a header longer than the file": (
        lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**62)),
        "damaged or cut short",
    ),
    "a tokenizer of nonsense": (text("tokenizer.json", '{"model": {"type": "Magic"}}'), "tokenizer"),
    "a tokenizer that is a list": (text("tokenizer.json", "[]"), "tokenizer"),
    "ids beyond the model": (
        tokenizer(model={"type": "WordLevel", "vocab": {"the": 10**6, "<unk>": 3}, "unk_token": "<unk>"}),
        ANY,
    ),
    "normalizers that double": (
        tokenizer(normalizer={"type": "Sequence", "normalizers": DOUBLING}),
        "more than 60 seconds or 1.1 GB of memory",
    ),
    "a template of a million tokens": (
        tokenizer(post_processor=MANY_TOKENS), r"makes 1,000,\d+ tokens of 56 letters",
    ),
    "a pipe for a config": (pipe("config.json"), "config.json of copy is damaged"),
    "a pipe for a tokenizer": (pipe("tokenizer.json"), "tokenizer.json is no ordinary file"),
    "a pipe for the settings of a tokenizer": (pipe("tokenizer_config.json"), "is no ordinary file"),
    "an endless config": (device("config.json"), "damaged"),
    "an endless tokenizer": (device("tokenizer.json"), "outside its folder"),
    "endless weights": (device("model.safetensors"), "outside its folder"),
    "an expression that never ends": (tokenizer(pre_tokenizer=BACKTRACKING), "tokenizer cannot read"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
def test_files_that_lie_are_refused_in_a_sentence(kind: str, folder: Path) -> None:
    lie, reason = LIES[kind]
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
    from model.hub.empty import grows_with

    described = json.loads((folder / "config.json").read_text()) | {"num_labels": 10**9}
    assert grows_with(described, "num_labels", {"num_labels": ""})
    assert not grows_with(described, "pad_token_id", {"num_labels": ""})


def test_a_text_that_a_tokenizer_would_make_endless_is_refused_and_the_next_is_read(
    folder: Path,
) -> None:
    doubling = [{"type": "Replace", "pattern": {"String": "z"}, "content": "zz"}] * 45
    tokenizer(normalizer={"type": "Sequence", "normalizers": doubling})(folder)
    model = load_model(str(folder), device="cpu")
    with pytest.raises(ValueError, match=r"cannot read this \(.* GB of memory\)\.$"):
        model.trace("the zebra saw")
    assert [token.text for token in model.tokens("the cat saw")] == ["the", "cat", "saw"]


def test_a_tokenizer_that_nobody_asked_for_a_while_is_started_anew(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")
    apart = model.tokenizer._tokenizer._tokenizer  # type: ignore[attr-defined]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, apart._process.stdin.fileno())  # it hears that nobody asks any more, and ends
    os.close(nowhere)
    assert apart._process.wait() == 0
    assert len(model.tokens("the cat saw")) == 3


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "sha256.json", "model.safetensors"]
)
@pytest.mark.parametrize("kind", [pipe, device])
def test_an_own_folder_with_a_file_that_never_ends_is_refused(
    kind: Callable[[str], Lie], name: str, tmp_path: Path
) -> None:
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
