"""Models as somebody loads them with Hugging Face's library, and what they are made of."""

from typing import Any

import numpy as np
import torch
import transformers

from model import Trace
from tests.model.hub_families import FAMILIES
from tests.model.hub_models import TARGET, saved


def own(family: str, **options: Any) -> tuple[Any, Any]:
    """A model and its tokenizer, as their user loads them."""
    kind = getattr(transformers, FAMILIES[family][0])
    folder = saved(family)
    return kind.from_pretrained(folder, **options), transformers.AutoTokenizer.from_pretrained(
        folder
    )


def target_of(family: str) -> str | None:
    return TARGET if FAMILIES[family][1] in ("BartConfig", "T5Config") else None


def differences(one: Trace, other: Trace) -> dict[str, float]:
    pairs = {}
    for a, b in zip(one.attention, other.attention, strict=True):
        assert a.place == b.place
        for name, x, y in zip(("query", "key", "value"), a.vectors, b.vectors, strict=True):
            pairs[f"{a.name} {name}"] = (x, y)
        pairs[f"{a.name} output"] = (a.output, b.output)
    for stack, states in one.residual.items():
        for number, (x, y) in enumerate(zip(states, other.residual[stack], strict=True)):
            pairs[f"{stack} {number}"] = (x, y)
    if one.logits is not None:
        pairs["logits"] = (one.logits, other.logits)
    return {name: float(np.abs(x - y).max()) for name, (x, y) in pairs.items()}


def snapshot(model: Any) -> dict[str, object]:
    """All that a model is made of: parts, weights, hooks, switches, settings."""
    found: dict[str, object] = {
        "settings": str(model.config),
        "writing": str(getattr(model, "generation_config", "")),
    }
    for path, part in model.named_modules():
        for name, value in vars(part).items():
            inner = (
                tuple((key, id(one)) for key, one in value.items())
                if isinstance(value, dict)
                else value
            )
            found[f"{path} {name}"] = (
                id(value),
                inner if isinstance(inner, tuple | bool | str) else None,
            )
        config = getattr(part, "config", None)
        found[f"{path} attention"] = (
            getattr(config, "_attn_implementation", None),
            vars(config) if config else None,
        )
    for name, weight in model.named_parameters():
        found[f"{name} weight"] = (
            id(weight),
            weight.data_ptr(),
            weight._version,
            weight.requires_grad,
            weight.grad,
        )
    for name, table in model.named_buffers():
        found[f"{name} table"] = (id(table), table.data_ptr(), table._version)
    return {name: repr(value) for name, value in found.items()}


def logits(model: Any, **fed: Any) -> torch.Tensor:
    with torch.no_grad():
        made = model(input_ids=torch.tensor([[4, 5, 6, 7, 4]]), **fed)
    return made.last_hidden_state if "last_hidden_state" in made else made.logits
