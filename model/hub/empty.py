"""Builds a model of Hugging Face's library from its config, without memory for its tensors."""

import re
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch import nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from model.hub.config import shape_of
from model.nn.config import Shape

_WRITING: dict[Shape, Any] = {
    "decoder": transformers.AutoModelForCausalLM,
    "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
}
_OTHER_HEADS = re.compile(r"Classification|QuestionAnswering|MultipleChoice|Reward")
_FEW, _MORE = 8, 16


def class_of(settings: Any, shape: Shape) -> Any:
    """The library's class for the layers of a model, with the matrix that makes logits of tokens where its
    files are of a model that has one: not of a classifier, nor of layers alone with a matrix of their own."""
    made = " ".join(settings.architectures or ())
    if "EncoderModel" in made:
        return transformers.AutoModelForTextEncoding
    bare = made == MODEL_MAPPING_NAMES.get(settings.model_type)
    if _OTHER_HEADS.search(made) or (bare and not settings.tie_word_embeddings):
        return transformers.AutoModel
    return _WRITING.get(shape, transformers.AutoModel)


def empty_body(settings: Any, shape: Shape) -> nn.Module:
    """The library's model on the meta device. Raises what the library raises for sizes that do not fit."""
    with torch.device("meta"):
        body: nn.Module = class_of(settings, shape).from_config(
            settings, attn_implementation="eager"
        )
    return body


def grows_with(described: Mapping[str, Any], name: str, others: Mapping[str, object]) -> bool:
    """Whether a model needs more memory when its config gives `name` a larger value: tried with two small
    values. others: sizes that are kept small meanwhile. True where it cannot be tried.
    """
    try:
        few, more = (
            _taken(_with(described, dict.fromkeys(others, _FEW) | {name: size}))
            for size in (_FEW, _MORE)
        )
    except Exception:  # each architecture has its own way to fail on sizes that do not fit
        return True
    return few != more


def _taken(described: dict[str, Any]) -> tuple[int, int]:
    """The values of a config once the library has read it, and the bytes of its model."""
    settings = transformers.AutoConfig.for_model(**described)
    values = _values(settings.to_dict())
    body = empty_body(settings, shape_of(settings))
    return values, sum(tensor.nbytes for tensor in (*body.parameters(), *body.buffers()))


def _values(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(map(_values, value.values()))
    return sum(map(_values, value)) if isinstance(value, list | tuple) else 1


def _with(described: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """A config with other sizes, wherever in it they stand."""
    return {
        name: _with(value, sizes) if isinstance(value, Mapping) else sizes.get(name, value)
        for name, value in described.items()
    }
