"""Loads any model of Hugging Face's library from a folder in the hub's layout, and proves it."""

from pathlib import Path
from typing import Any

import torch
import transformers

from model.download.hub_folder import described
from model.download.packed import packed
from model.download.wheel import Progress
from model.hub.chat_template import chat_template
from model.hub.claims import check_numbers, check_shape
from model.hub.config import shape_of
from model.hub.empty import class_of, empty_body
from model.hub.handed_over import handed_over
from model.hub.layer_by_layer import MappedFiles, read_by_layer
from model.hub.precision import halve
from model.hub.proving import candidate_of, prove
from model.hub.quantized import ask_for_numbers, check_readable, unpack
from model.hub.tokenizer import first_line, load_tokenizer
from model.nn.config import Shape
from model.run.model import Model
from model.system.memory import is_out_of_memory
from model.system.settings import settings as owner


def load_hub(folder: Path, name: str, device: torch.device, progress: Progress) -> Model:
    """The model of a folder that holds config.json, safetensors and a tokenizer.

    Raises ValueError, with the reason, for what cannot be loaded or cannot be shown truly.
    """
    body, unused, tokenizer, shape = _read(folder, name, progress)
    unpack(body)
    check_numbers(body)
    progress(f"Checking {name} against the library's own attention", None)
    candidate, reads = candidate_of(name, body, shape, tokenizer, chat_template(folder))
    model, reference = prove(candidate, *reads, unused=unused)
    model = model.on(device)
    if (precision := owner().precision) != "float32":
        halve(model, candidate.on(device), reference, precision)
    return model


def load_by_layer(folder: Path, name: str, progress: Progress) -> Model:
    """The same for a model larger than memory, on the processor in float32. In every pass its layers are read
    from the files one after the other, and forgotten. Raises ValueError as `load_hub` does."""
    if (how := packed(folder)) is not None:
        raise ValueError(
            f"its weights are quantized ({how.words}), so they cannot be read layer by layer: unpacked they "
            "have to fit into memory"
        )
    body, unused, tokenizer, shape = _read(folder, name, progress, "auto")
    copied = [
        path
        for path, weight in body.named_parameters()
        if weight.untyped_storage().resizable()  # memory of PyTorch's own, not of a file
    ]
    if copied:
        raise ValueError(
            f"{len(copied):,} of its weights, {copied[0]} for instance, are not in its files as the "
            "library's model needs them, so they cannot be read layer by layer"
        )
    read_by_layer(body, MappedFiles.now())
    progress(f"Checking {name} against the library's own attention", None)
    candidate, reads = candidate_of(name, body, shape, tokenizer, chat_template(folder))
    return prove(candidate, *reads, borrowed=True, unused=unused)[0]


def _read(
    folder: Path, name: str, progress: Progress, precision: torch.dtype | str = torch.float32
) -> tuple[Any, tuple[str, ...], Any, Shape]:
    """The library's model of a folder, the tensors of its files that it does not use, its tokenizer and its
    shape."""
    progress(f"Reading the files of {name}", None)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with handed_over(folder) as files:
        how = packed(folder)
        if how is not None:
            check_readable(folder, how)
        settings = _settings(folder, files)
        if how is not None:
            ask_for_numbers(settings, how)
        shape = shape_of(settings)
        tokenizer = load_tokenizer(files)
        progress(f"Loading the weights of {name}", None)
        return *_body(folder, files, settings, shape, precision), tokenizer, shape


def _settings(folder: Path, files: Path) -> Any:
    """The library's config of a folder."""
    raw = described(folder)
    kind = raw.get("model_type")
    try:
        return transformers.AutoConfig.from_pretrained(
            files, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # a damaged config ends in whatever the library's checks raise
        if "auto_map" in raw:
            raise ValueError(
                f"its architecture {kind!r} needs its own code, and this app never runs code that "
                "comes with a model"
            ) from error
        if kind in transformers.CONFIG_MAPPING:
            raise ValueError(
                "its config is damaged: Hugging Face's library says "
                f"“{first_line(error.__cause__ or error)}”"
            ) from error
        raise ValueError(
            f"Hugging Face's library does not know its architecture {kind!r}"
        ) from error


def _body(
    folder: Path, files: Path, settings: Any, shape: Shape, precision: torch.dtype | str
) -> tuple[Any, tuple[str, ...]]:
    """The library's model with every weight from the files, with eager attention, and the tensors that it
    leaves out. precision: of the weights; "auto": that of the files."""
    try:
        empty = empty_body(settings, shape)
    except Exception as error:  # each architecture has its own way to fail on sizes that do not fit
        raise ValueError(
            f"Hugging Face's library cannot build it, and says “{first_line(error)}”"
        ) from error
    check_shape(empty, folder)
    try:
        body, told = class_of(settings, shape).from_pretrained(
            files,
            config=settings,
            dtype=precision,
            attn_implementation="eager",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are told, and refused below
        )
    except Exception as error:
        if is_out_of_memory(error):
            raise MemoryError from error
        raise ValueError(
            f"Hugging Face's library cannot load it, and says “{first_line(error)}”"
        ) from error
    missing = [key for key in told["missing_keys"] if "pooler" not in key]
    if missing or told["mismatched_keys"]:
        count = len(missing) + len(told["mismatched_keys"])
        raise ValueError(f"its files lack {count} of its weights, or have them in different sizes")
    made = {name.rpartition(".")[2] for name, _ in body.named_buffers()}  # it computes these itself
    unused = (name for name in told["unexpected_keys"] if name.rpartition(".")[2] not in made)
    return body.eval().requires_grad_(False), tuple(sorted(unused))
