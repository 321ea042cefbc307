"""Changes that make a folder of a model lie: each with a part of the sentence that refuses it."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

Lie = Callable[[Path], object]
ANY = "cannot be shown"


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


def multiplying(letter: str) -> dict[str, Any]:
    """A normalizer that writes a letter 100 times, as often as makes a text of any length."""
    more = {"type": "Replace", "pattern": {"String": letter}, "content": letter * 100}
    return {"type": "Sequence", "normalizers": [more] * 9}


BACKTRACKING = {
    "type": "Split",
    "pattern": {"Regex": "([a-zA-Z ,]+)+$"},
    "behavior": "Isolated",
    "invert": False,
}

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
    "a nested config": (nested("config.json"), "is nested too deeply"),
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
    "another shape": (weight("lm_head.weight", lambda values: values[:3].contiguous()), "different sizes"),
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
    "normalizers that multiply": (
        tokenizer(normalizer=multiplying("a")),
        "more than 60 seconds or 1.1 GB of memory",
    ),
    "a template of a million tokens": (
        tokenizer(post_processor=MANY_TOKENS), r"makes 1,000,\d+ tokens of 56 letters",
    ),
    "a pipe for a config": (pipe("config.json"), "config.json of copy is damaged"),
    "a pipe for a tokenizer": (pipe("tokenizer.json"), "tokenizer.json is not an ordinary file"),
    "a pipe for the settings of a tokenizer": (pipe("tokenizer_config.json"), "is not an ordinary file"),
    "an endless config": (device("config.json"), "damaged"),
    "an endless tokenizer": (device("tokenizer.json"), "outside its folder"),
    "endless weights": (device("model.safetensors"), "outside its folder"),
    "an expression that never ends": (tokenizer(pre_tokenizer=BACKTRACKING), "tokenizer cannot read"),
}  # fmt: skip
