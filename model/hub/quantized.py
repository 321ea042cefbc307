"""Weights in 4 or 8 bits: which ways of packing are read, and how they become plain numbers.

The library's loaders read them, and every matrix is unpacked to float32, once; this is the model that is
proven and shown. A pass with packed weights would not do: it rounds more than the weights. LLM.int8 rounds
what each matrix reads (Dettmers et al. 2022), and how bitsandbytes computes with 4 bits differs from machine
to machine. Its own unpacking gives wrong numbers where blocks do not fill the rows, so that is done here.
"""

import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.download.packed import Packed, holds_packed

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
