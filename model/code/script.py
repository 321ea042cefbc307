"""The listing as a script: with a sentence's ids and the saved weights it prints the model's result."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import safetensors.numpy
import torch
from torch import Tensor

from model.code.check import last_states
from model.code.listing import Length, lines, written
from model.snippets.script import LOADER
from model.system.remote import asked
from model.trace.records import Token
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

SHOWN = 5  # most probable tokens, or numbers of an encoder's first vector
_NEXT_TOKENS = """
# The most probable tokens after the last one: id, text, probability
names = {names}
probabilities = forward({ids})[-1].softmax(-1)
for number in probabilities.topk({shown}).indices.tolist():
    print(number, repr(names.get(number, "?")), f"{{probabilities[number]:.4f}}")
"""
_VECTOR = """
# The vector of the first token: its first numbers
for number in forward({ids})[0, :{shown}].tolist():
    print(f"{{number:.4f}}")
"""


def lengths(trace: Trace, name: str = "") -> dict[Length, int]:
    """How many tokens each letter of a shape stands for in an attention sub-layer: this one, or the first."""
    attention = trace.find(name or trace.attention[0].name)
    return {
        "n": len(trace.queries_of(attention)),
        "m": len(trace.keys_of(attention)),
        "source": len(trace.tokens),
        "target": len(trace.target_tokens),
    }


def model_script(model: "Model", trace: Trace, names: Iterable[str]) -> str:
    """A script that needs PyTorch and the file of `weights_file` only. It prints what `printed` says.

    names: of the model's weights.
    """
    listed = lines(model.config, names)
    two = bool(trace.target_tokens)  # then one function serves sub-layers of several lengths
    known = {key: size for key, size in lengths(trace).items() if not two or key not in ("n", "m")}
    texts = _read(trace)
    given = "".join(
        f"{name} = torch.tensor({[token.id for token in tokens]})\n"
        for name, tokens in texts.items()
    )
    ids = ", ".join(["ids", "w", *list(texts)[1:]])
    template = _VECTOR if trace.prediction is None else _NEXT_TOKENS
    told = (
        {token.id: token.text for token in model.tokenizer.named(likely(trace))}
        if trace.prediction
        else {}
    )
    ending = template.format(ids=ids, shown=SHOWN, names=repr(told))
    file = f'w = load("{stem(model)}.safetensors")\n'
    imports, loader = "\n".join(LOADER).split("import torch\n")  # which the listing imports itself
    return f"{imports}{written(listed, known)}{loader}\n\n{given}{file}{ending}"


def printed(model: "Model", trace: Trace) -> str:
    """What the script prints, from the model's own numbers."""
    if trace.prediction is None:
        vector = last_states(trace, "encoder")[0]
        return "\n".join(f"{number:.4f}" for number in vector[:SHOWN].tolist())
    probabilities = _probabilities(trace)
    return "\n".join(
        f"{token.id} {token.text!r} {probabilities[token.id]:.4f}"
        for token in model.tokenizer.named(likely(trace))
    )


def likely(trace: Trace) -> list[int]:
    """The ids of the most probable next tokens, the most probable first."""
    ids: list[int] = _probabilities(trace).topk(SHOWN).indices.tolist()
    return ids


def _probabilities(trace: Trace) -> Tensor:
    return torch.tensor(np.array(trace.require_prediction().after(-1))).softmax(-1)


@asked
def weights_of(model: "Model") -> bytes:
    """The file of a model's weights. Raises ValueError for a layout without names."""
    return weights_file(model.module.named_weights())


def weights_file(weights: Mapping[str, Tensor]) -> bytes:
    """Weights by name, as safetensors of float32."""
    return safetensors.numpy.save(
        {name: np.ascontiguousarray(one.cpu().float().numpy()) for name, one in weights.items()}
    )


def saves(model: "Model", name: str) -> bool:
    """Whether the file of a model's weights holds this one; none can be had of an unknown layout."""
    try:
        return name in model.module.named_weights()
    except ValueError:
        return False


def stem(model: "Model") -> str:
    """The name of the files of a model, without their endings. Of a path only its last part: others see the
    files."""
    name = Path(model.name).name if Path(model.name).is_absolute() else model.name
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "model"


def _read(trace: Trace) -> Mapping[str, tuple[Token, ...]]:
    named = {"ids": trace.tokens, "target": trace.target_tokens}
    return {name: tokens for name, tokens in named.items() if tokens}
