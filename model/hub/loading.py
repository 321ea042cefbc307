"""Loads any model of Hugging Face's library from a folder in the hub's layout, and proves it: only checked
files, sizes that fit the config, quantized weights unpacked, half precision where the owner asks for it."""

import importlib.util
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn

from model.download.hub_folder import (
    WEIGHTS,
    Packed,
    described,
    holds_packed,
    own_code,
    packed,
)
from model.download.wheel import Progress
from model.hub.attention import NAME
from model.hub.claims import check_numbers, check_shape, handed_over
from model.hub.config import BUILDING, class_of, empty_body, shape_of
from model.hub.layer_by_layer import MappedFiles, read_by_layer
from model.hub.proving import Candidate, Reference, candidate_of, prove, traced
from model.hub.tokenizer import chat_template, first_line, load_tokenizer
from model.hub.twin import set_attention
from model.nn.config import Shape
from model.nn.intervention import UNCHANGED
from model.run.model import Model
from model.system.memory import is_out_of_memory
from model.system.settings import Precision
from model.system.settings import settings as owner
from model.trace.arrays import Array
from model.trace.collect import array_of

# The files of a folder that the library gets: only checked ones, and a config with the model's own settings.
# Chat templates, adapters and code are left out, and all settings that say how to run the model.


# Compares the sizes in a config with its weights, before memory is allocated.
# A config of a few bytes can describe a model of any size, but weights cannot be larger than their files.
# Only a size that needs memory is checked: one that the library merely compares with others may be any
# number.


# Half precision, where the owner asks for it.
# Its rounding would hide a mistake, so a model is checked in float32 first. Then the rounding is measured:
# our pass in half precision may lie no farther from the library's weights and logits in float32 than a few
# times what the library's own pass in half precision does.

TIMES = 3.0  # the fused kernel rounds in other places than the library's steps
RESULT = "result"
KINDS: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def halve(model: Model, candidate: Candidate, exact: Reference, precision: Precision) -> None:
    """Gives the weights of a hub model half precision, where it is now.

    Args:
        candidate: the model before it was proven, with the same weights in memory.
        exact: the library's eager attention in float32.

    Raises ValueError as `check_rounding` does.
    """
    kept = set(getattr(candidate.body, "_keep_in_fp32_modules", None) or ())
    for name, weight in candidate.body.named_parameters():
        if kept.isdisjoint(name.split(".")):
            weight.data = weight.data.to(KINDS[precision])
    check_rounding(model, candidate, exact)


def check_rounding(model: Model, candidate: Candidate, exact: Reference) -> None:
    """Raises ValueError, with a sentence, where our pass in the model's precision differs from float32 by
    more than rounding does. exact: the library's eager attention in float32."""
    precision = str(model.precision).removeprefix("torch.")
    set_attention(candidate.body, "eager")
    library = _arrays(candidate.eager())
    set_attention(candidate.body, NAME)
    trace, result = traced(model, exact, UNCHANGED)
    ours = {
        one.name: np.stack([one.weights(head) for head in range(one.heads)])
        for one in trace.attention
    } | {RESULT: result}
    for name, expected in _arrays(exact).items():
        own, theirs = (float(np.abs(one[name] - expected).max()) for one in (ours, library))
        if not own <= TIMES * theirs:
            what = "its result" if name == RESULT else f"the weights of {name}"
            raise ValueError(
                f"in {precision} {what} would differ from float32 by {own:.1g}, and the library's own in "
                f"{precision} differ by {theirs:.1g}"
            )


def _arrays(reference: Reference) -> dict[str, Array]:
    """Each layer's weights (head, query, key) by its name, and the result (token, …)."""
    weights = {
        replace(place, layer=layer).name: array_of(one)
        for place, layers in reference.weights.items()
        for layer, one in enumerate(layers)
    }
    return weights | {RESULT: array_of(reference.result)}


# Weights in 4 or 8 bits: which ways of packing are read, and how they become plain numbers.
# The library's loaders read them, and every matrix is unpacked to float32, once; this is the model that is
# proven and shown. A pass with packed weights would not do: it rounds more than the weights. LLM.int8 rounds
# what each matrix reads (Dettmers et al. 2022), and how bitsandbytes computes with 4 bits differs from
# machine to machine. Its own unpacking gives wrong numbers where blocks do not fill the rows, so that is done
# here.

_NEEDED = {  # packages of the library's loaders, by the way of packing
    "bitsandbytes": ("accelerate", "bitsandbytes"),
    "fp8": ("accelerate",),
    "compressed-tensors": ("compressed_tensors",),
    "mxfp4": (),
}
_ELSEWHERE = {  # why others are not read here
    "gptq": "the library reads them with gptqmodel, which has to be compiled for the machine",
    "awq": "the library reads them with gptqmodel, which has to be compiled for the machine",
    "torchao": "the library reads them with torchao, which this app does not use",
    "hqq": "the library reads them with hqq, which this app does not use",
}
EXTRA = "quantized"


def check_readable(folder: Path, packed: Packed) -> None:
    """Raises ValueError, with the reason, for weights that cannot be unpacked here."""
    if packed.method not in _NEEDED:
        why = _ELSEWHERE.get(packed.method, "this app does not unpack them")
        raise ValueError(
            f"its weights are quantized ({packed.words}), and {why}; open the model's own "
            "floating-point weights instead"
        )
    if not holds_packed(folder):
        raise ValueError(
            f"its config says that its weights are quantized ({packed.words}), and its files hold none "
            "that are"
        )
    missing = [name for name in _NEEDED[packed.method] if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"its weights are quantized ({packed.words}), and to unpack them the package "
            f"{missing[0]} is needed, which is not installed: it comes with the extra “{EXTRA}”"
        )


def ask_for_numbers(settings: Any, packed: Packed) -> None:
    """Has the library unpack weights while it loads them, where it can."""
    if packed.method != "bitsandbytes":
        settings.quantization_config["dequantize"] = True


def unpack(body: Any) -> None:
    """Makes each matrix that is still packed one of float32. Raises ValueError where a file's description of
    a matrix does not fit it."""
    found = False
    for name, part in list(body.named_modules()):
        weight = getattr(part, "weight", None)
        if isinstance(weight, nn.Parameter) and not weight.is_floating_point():
            body.set_submodule(name, _linear(part, _numbers(name, part)))
            found = True
    if found:
        body.hf_quantizer.remove_quantization_config(body)


def _linear(part: Any, matrix: Tensor) -> nn.Linear:
    """A map with this matrix, and the bias of a packed one."""
    with torch.device("meta"):
        made = nn.Linear(part.in_features, part.out_features, bias=part.bias is not None)
    made.weight, made.bias = nn.Parameter(matrix, requires_grad=False), part.bias
    return made


def _numbers(name: str, part: Any) -> Tensor:
    """(out, in): the numbers of a packed matrix."""
    state, scales = getattr(part.weight, "quant_state", None), getattr(part.weight, "SCB", None)
    try:
        if state is not None and tuple(state.shape) == (part.out_features, part.in_features):
            return _of_blocks(part.weight.data, state).reshape(part.out_features, part.in_features)
        if scales is not None and part.weight.shape == (part.out_features, part.in_features):
            return part.weight.data.float() * scales.float().reshape(len(part.weight), 1) / 127
    except (RuntimeError, IndexError) as error:
        raise ValueError(f"its weights {name} are described in sizes that do not fit") from error
    raise ValueError(f"its weights {name} are packed in a way that this app does not know")


def _of_blocks(packed: Tensor, state: Any) -> Tensor:
    """4 bits each, two in a byte: a place in a list of values, times the largest value of its block (QLoRA,
    Dettmers et al. 2023, 3). Those largest values may be packed themselves, in 8 bits."""
    largest = state.absmax
    if state.nested:
        inner = state.state2
        largest = (
            _in_blocks(inner.code[largest.long()], inner.absmax, inner.blocksize) + state.offset
        )
    both = packed.reshape(-1).view(torch.uint8)
    places = torch.stack([both >> 4, both & 15], -1).reshape(-1)
    return _in_blocks(state.code[places.long()], largest, state.blocksize)


def _in_blocks(values: Tensor, largest: Tensor, size: int) -> Tensor:
    """Each block of so many values times its largest one; the last block may be shorter."""
    if size < 1 or largest.numel() != -(-len(values) // size):
        raise IndexError(f"{largest.numel()} blocks of {size} for {len(values)} values")
    return values.float() * largest.float().repeat_interleave(size)[: len(values)]


def load_hub(folder: Path, name: str, device: torch.device, progress: Progress) -> Model:
    """The model of a folder that holds config.json, safetensors and a tokenizer.

    Args:
        name: as the model is called afterwards.
        progress: is told what is being done.

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
        if code := own_code(folder):
            warnings.warn(
                f"{name} comes with code of its own ({', '.join(code)}), which is never run: what is shown "
                f"and checked is the library's own {settings.model_type!r} with its weights.",
                stacklevel=2,
            )
        tokenizer = load_tokenizer(files)
        progress(f"Loading the weights of {name}", None)
        return *_body(folder, files, settings, shape, precision), tokenizer, shape


def _settings(folder: Path, files: Path) -> Any:
    """The library's config of a folder."""
    raw = described(folder)
    kind = raw.get("model_type")
    if raw.get("transformers_weights") is not None:
        raise ValueError(
            f"its config names a file of weights of its own, and only {WEIGHTS} is read"
        )
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
        with BUILDING:
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
