"""Shipped models on disk: one folder a model in `model/assets/`, each file's hash beside it.

config.json, tokenizer.json, model.safetensors (fp16), card.json and, where training is shown,
checkpoints/STEP.safetensors.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from model.config import TransformerConfig
from model.files import file_hash
from model.tokenizers import GPT2Subset, Words, tokenizer_from
from model.transformer import Transformer

ASSETS = Path(__file__).parent / "assets"
WEIGHTS = "model.safetensors"
HASHES = "sha256.json"


def save_asset(
    folder: Path,
    module: Transformer,
    tokenizer: GPT2Subset | Words,
    *,
    card: dict[str, object],
    checkpoints: dict[int, dict[str, Tensor]] | None = None,
) -> None:
    """Writes a model with everything needed to load it, weights as fp16, and the files' hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", asdict(module.config))
    _write_json(folder / "tokenizer.json", tokenizer.description())
    _write_json(folder / "card.json", card)
    safetensors.torch.save_file(_half(module.state_dict()), folder / WEIGHTS)
    for step, state in (checkpoints or {}).items():
        (folder / "checkpoints").mkdir(exist_ok=True)
        safetensors.torch.save_file(_half(state), folder / checkpoint_file(step))
    hashes = {
        str(path.relative_to(folder)): file_hash(path)
        for path in sorted(folder.rglob("*.safetensors"))
    }
    _write_json(folder / HASHES, hashes)


def load_asset(
    folder: Path, weights: str = WEIGHTS
) -> tuple[Transformer, GPT2Subset | Words, dict[str, object]]:
    """The model, its tokenizer and its card; weights as float32.

    `weights` names another checkpoint in the folder. Raises ValueError, with the reason, for files
    that are missing, damaged or do not fit the config.
    """
    config = TransformerConfig(**_read_json(folder / "config.json"))
    tokenizer = tokenizer_from(_read_json(folder / "tokenizer.json"))
    expected = _read_json(folder / HASHES).get(weights)
    module = Transformer(config)
    load_weights(module, folder / weights, expected=str(expected))
    return module, tokenizer, _read_json(folder / "card.json")


def load_weights(module: Transformer, path: Path, *, expected: str) -> None:
    """Puts a safetensors file into a module. Raises ValueError if it is damaged or does not fit."""
    if not path.is_file():
        raise ValueError(f"The weights {path.name} of {path.parent.name} are missing.")
    if file_hash(path) != expected:
        raise ValueError(
            f"The weights {path.name} of {path.parent.name} are damaged: their SHA-256 is not the "
            "one they were shipped with."
        )
    try:
        state = safetensors.torch.load_file(path)
        module.load_state_dict({name: value.float() for name, value in state.items()})
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"The weights {path.name} do not fit the model {path.parent.name}."
        ) from error
    module.eval().requires_grad_(False)


def checkpoint_file(step: int) -> str:
    """Where a checkpoint lies inside its model's folder."""
    return f"checkpoints/{step:06d}.safetensors"


def _half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.to("cpu", torch.float16).contiguous() for name, value in state.items()}


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content
    except FileNotFoundError as error:
        raise ValueError(f"The file {path.name} of {path.parent.name} is missing.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"The file {path.name} of {path.parent.name} is damaged.") from error
