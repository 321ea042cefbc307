"""Compares the sizes in a config with its weights, before memory is allocated.

A config of a few bytes can describe a model of any size, but weights cannot be larger than their files.
Only a size that needs memory is checked: one that the library merely compares with others may be any
number.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from model.download.hub_folder import (
    CONFIG,
    FLOAT_BYTES,
    TOKENIZER_CONFIG,
    WANTED,
    check_file,
    described,
    numbers,
    read_json,
    tensors,
    weight_files,
)

_KINDS = (".json", ".txt", ".model", ".spm", ".codes", ".tokenizer")
_WRITTEN = (CONFIG, TOKENIZER_CONFIG, "adapter_config.json", "chat_template.json")  # never linked
_OURS = (  # we decide which code runs, and the models shown have no labels
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_internal",
    "experts_implementation",
    "_experts_implementation",
    "_experts_implementation_internal",
    "auto_map",
    "num_labels",
)


def for_library(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the model's own settings only. Raises ValueError where it is nested too deeply."""
    try:
        return _own(settings)
    except RecursionError as error:
        raise ValueError("its config is nested too deeply") from error


def _own(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _own(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in _OURS
    }


@contextmanager
def handed_over(folder: Path) -> Iterator[Path]:
    """A folder for the library, removed when the body ends. Raises ValueError for a needed file that is
    not an ordinary one, and where the folder cannot be made."""
    config, links = for_library(described(folder)), [*_read_whole(folder), *weight_files(folder)]
    with ExitStack() as stack:
        try:
            view = Path(stack.enter_context(TemporaryDirectory(prefix="model-")))
            _write(view / CONFIG, config)
            if (folder / TOKENIZER_CONFIG).exists():
                settings = for_library(read_json(folder / TOKENIZER_CONFIG))
                settings.pop("chat_template", None)
                _write(view / TOKENIZER_CONFIG, settings)
            for file in links:
                link = view / file.relative_to(folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.resolve())
        except OSError as error:
            raise ValueError("the folder for temporary files cannot be written") from error
        yield view


def _read_whole(folder: Path) -> Iterator[Path]:
    """The files beside the weights that the library may read. One that is not ordinary is left out, unless a
    model needs it."""
    for file in folder.iterdir():
        if file.suffix not in _KINDS or file.name in _WRITTEN:
            continue
        try:
            check_file(folder, file)
        except ValueError:
            if WANTED.fullmatch(file.name):
                raise
        else:
            yield file


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


ROOM = 2**30  # bytes that a table of positions may take where the weights are small
MOST_OTHERS = 2**20  # of numbers with other names, if the model grows with them
SLACK = 2**24  # weights that the library makes itself, such as tables of positions
_WIDE = 8  # bytes of a number in such a table while it is made
_POSITIONS = re.compile(r"(max_position_embeddings|n_positions|n_ctx|max_sequence_length)")
_WIDTHS = re.compile(r"hidden_size|d_model|n_embd|dim")
_LAYERS = re.compile(r"\w*layers?")
_SIZES = re.compile(
    r"(vocab|type_vocab|hidden|intermediate|embedding)_size|n_(embd|head|inner)|d_(model|ff|kv)"
    r"|\w*(ffn|head|hidden|proj|embed)_dim|dim|\w*_heads"
)


def check_claims(folder: Path) -> None:
    """Raises ValueError for a size in the config that is negative or larger than the weights, if it needs
    memory."""
    beyond = dict(_beyond(folder))
    if not beyond:
        return
    from model.hub.config import grows_with  # Hugging Face's library takes seconds to import

    settings = for_library(described(folder))
    for name, sentence in beyond.items():
        if grows_with(settings, name, beyond):
            raise ValueError(sentence)


def _beyond(folder: Path) -> Iterator[tuple[str, str]]:
    """Each size that is negative or larger than the weights, with a sentence that says so."""
    count, held = len(tensors(folder)), numbers(folder)
    claims = list(_whole_numbers(for_library(described(folder))))
    width = max((size for name, size in claims if _WIDTHS.fullmatch(name)), default=1_024)
    for name, size in claims:
        if _LAYERS.fullmatch(name):
            most, what = count, f"its weights are {count:,} tensors"
        elif _SIZES.fullmatch(name):
            most, what = held, f"its weights are {held:,} numbers"
        elif _POSITIONS.fullmatch(name):
            most = max(4 * _WIDE * held, ROOM) // (_WIDE * max(width, 1))
            what = "no model of this size reads that many tokens"
        elif size > MOST_OTHERS:
            most, what = MOST_OTHERS, "no model that this app shows needs that many"
        else:
            continue
        if not 0 <= size <= most:
            said = f"{size:,}" if abs(size) < 10**18 else "a number of more than 18 digits"
            yield name, f"its config says {name} is {said}, and {what}"


def check_shape(body: nn.Module, folder: Path) -> None:
    """Raises ValueError for a model, built without memory, that is far larger than its files, or that has far
    larger tables of its own.

    Tied weights are in the files once and in the model twice.
    """
    held = numbers(folder)
    claimed = sum(weight.numel() for weight in body.parameters())
    made = sum(table.nbytes for table in body.buffers())
    if claimed > 2 * held + SLACK:
        raise ValueError(f"its config describes {claimed:,} weights, but its files hold {held:,}")
    if made > max(4 * FLOAT_BYTES * held, ROOM):
        raise ValueError(
            f"its config describes tables of {made:,} bytes, and its files hold {held:,} numbers"
        )


def check_numbers(body: nn.Module) -> None:
    """Raises ValueError for weights that are not finite."""
    for name, weight in body.named_parameters():
        if weight.numel() and not all(math.isfinite(end) for end in torch.aminmax(weight.detach())):
            raise ValueError(f"its weights {name} are not all finite numbers")


def _whole_numbers(settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _whole_numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield name, value
