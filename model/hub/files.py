"""A folder in the hub's layout, looked at before anything of it is loaded.

Weights are read from safetensors only: a pickle can run code when it is opened.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
FLOAT_BYTES = 4  # what each number takes once it is loaded


def described(folder: Path) -> dict[str, Any]:
    """The config of a folder. Raises ValueError for none, or one that is damaged."""
    return _json(folder / CONFIG)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that hold the weights. Raises ValueError where they are missing,
    incomplete or pickles."""
    if (folder / INDEX).is_file():
        names = _json(folder / INDEX).get("weight_map")
        if not isinstance(names, dict):
            raise ValueError(f"its {INDEX} is damaged")
        files = [folder / str(name) for name in sorted(set(names.values()))]
    else:
        files = [folder / WEIGHTS]
    for file in files:
        if file.resolve().is_file():
            continue
        if any(next(folder.glob(pattern), None) for pattern in _PICKLES):
            raise ValueError(
                "its weights are a pickle, which can run code when it is opened; only safetensors "
                "are read"
            )
        raise ValueError(f"its weights {file.name} are missing")
    return files


def checked_size(folder: Path) -> int:
    """Bytes that the weights take once they are loaded. Raises ValueError for damaged files."""
    total = 0
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="numpy") as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no dictionary
                    shape, numbers = opened.get_slice(name).get_shape(), 1
                    for length in shape:
                        numbers *= length
                    total += numbers * FLOAT_BYTES
        except (SafetensorError, OSError) as error:
            raise ValueError(
                f"its weights {file.name} are damaged or cut short ({error})"
            ) from error
    return total


def check_memory(size: int, most_bytes: int) -> None:
    """Raises ValueError for weights over a bound of bytes; 0 is no bound."""
    if most_bytes and size > most_bytes:
        raise ValueError(
            f"it needs {size / 1e6:,.0f} MB of memory and this app keeps {most_bytes / 1e6:,.0f} MB "
            "of models (ATTENTION_MODEL_MB)"
        )


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"its {path.name} is missing") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"its {path.name} is damaged") from error
    if not isinstance(content, dict):
        raise ValueError(f"its {path.name} is damaged")
    return content
