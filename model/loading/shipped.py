"""Shipped models on disk: one folder for each in `model/assets/`.

config.json, tokenizer.json, model.safetensors (fp16), card.json, sha256.json with the hashes and, where
training is shown, checkpoints/STEP.safetensors.

The wheel holds the weights packed, bit for bit the same: 16-bit numbers, those of a checkpoint as differences
from the trained model beside it. All low bytes stand before all high ones, because only the high ones repeat;
then zlib packs both.
"""

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors import torch as tensor_files

from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, WordTokenizer, tokenizer_from
from model.system.files import NotReadError, OddFileError, file_hash, json_object

ASSETS = Path(__file__).parents[1] / "assets"
WEIGHTS = "model.safetensors"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
HASHES = "sha256.json"
_PACKED = ".packed"  # what follows the name of packed weights
_NAMES = {"inner": "w_in", "outer": "w_out"}
LONGEST = 4_096  # tokens: a longer text would not fit on a page


class DamagedError(ValueError):
    """A file that ships with the app is missing, or is not as it was shipped. what: the same of a folder that
    does not ship."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} Reinstall the app to repair it; the other models still work.")


def load_asset(
    folder: Path,
    weights: str = WEIGHTS,
    *,
    build: Callable[[TransformerConfig], Transformer] = Transformer,
) -> tuple[Transformer, GPT2Subset | WordTokenizer, dict[str, Any]]:
    """The model, its tokenizer and its card; weights as float32. `weights` may name a checkpoint of the
    folder. build: makes the module of the folder's config. Raises ValueError for files that are missing,
    damaged or do not fit each other."""
    described, spelled = _read_json(folder / CONFIG), _read_json(folder / TOKENIZER)
    hashes = _read_json(folder / HASHES)
    for name in (CONFIG, TOKENIZER, weights):
        if name == weights or name in hashes:
            _check_hash(folder, name, hashes.get(name))
    try:
        config, tokenizer = TransformerConfig(**described), tokenizer_from(spelled)
    except TypeError as error:
        raise DamagedError(
            f"The file {CONFIG} of {folder.name} does not have the sizes that a model needs."
        ) from error
    except ValueError as error:
        raise ValueError(f"The files of {folder.name} describe no model: {error}") from error
    if config.n_ctx > LONGEST:
        raise ValueError(
            f"The config of {folder.name} says that it reads {config.n_ctx:,} tokens; at most "
            f"{LONGEST:,} are shown."
        )
    if tokenizer.size != config.d_vocab:
        raise ValueError(
            f"The tokenizer of {folder.name} has {tokenizer.size:,} tokens, its model "
            f"{config.d_vocab:,}."
        )
    return _module(config, folder, weights, build), tokenizer, _read_json(folder / "card.json")


def shipped_tokenizer(name: str) -> GPT2Subset | WordTokenizer:
    """The tokenizer of a model that ships. Raises ValueError for a missing or damaged file."""
    folder = ASSETS / name
    _check_hash(folder, TOKENIZER, _read_json(folder / HASHES).get(TOKENIZER))
    return tokenizer_from(_read_json(folder / TOKENIZER))


def _check_hash(folder: Path, name: str, expected: object) -> None:
    file = folder / name
    if not (file.is_file() or is_packed(file)):
        raise DamagedError(f"The file {name} of {folder.name} is missing.")
    try:
        if is_packed(file):
            digest = hashlib.sha256(unpacked(file, folder / WEIGHTS)).hexdigest()
        else:
            digest = file_hash(file)
    except ValueError as error:
        raise DamagedError(f"The file {name} of {folder.name} is damaged.") from error
    except OSError as error:
        raise NotReadError(name, folder.name, error) from error
    if digest != expected:
        raise DamagedError(
            f"The file {name} of {folder.name} is damaged: its SHA-256 is not the one in {HASHES}."
        )


def _module(
    config: TransformerConfig,
    folder: Path,
    weights: str,
    build: Callable[[TransformerConfig], Transformer],
) -> Transformer:
    try:
        file = folder / weights
        if is_packed(file):
            state = tensor_files.load(unpacked(file, folder / WEIGHTS))
        else:
            state = tensor_files.load_file(file)
        if config.encoder_layers + config.decoder_layers > len(state):
            raise RuntimeError("more layers than weights")
        with torch.device("meta"):  # without memory: the weights bring their own
            module = build(config)
        floats = {_named(name): value.float() for name, value in state.items()}
        module.load_state_dict(floats, assign=True)
    except OSError as error:
        raise NotReadError(weights, folder.name, error) from error
    except (SafetensorError, RuntimeError, OverflowError) as error:
        raise DamagedError(f"The weights {weights} do not fit the model {folder.name}.") from error
    if not all(np.isfinite(value.numpy()).all() for value in floats.values()):
        raise DamagedError(f"The weights {weights} of {folder.name} are not all finite numbers.")
    return module.eval().requires_grad_(False)


def is_packed(file: Path) -> bool:
    """Whether a file of weights lies here in its packed form only."""
    return not file.is_file() and file.with_name(file.name + _PACKED).is_file()


def unpacked(file: Path, model: Path) -> bytes:
    """What a file of weights holds that lies here packed. model: the file of the trained model.

    Raises OSError for a file that cannot be read, ValueError for one that is damaged.
    """
    try:
        halves = zlib.decompress(file.with_name(file.name + _PACKED).read_bytes())
    except zlib.error as error:
        raise ValueError("its packed bytes are damaged") from error
    numbers = np.frombuffer(halves, np.uint8).reshape(2, -1).T.copy().view("<u2")[:, 0]
    if file != model:
        numbers = numbers + np.frombuffer(unpacked(model, model), "<u2")
    return numbers.tobytes()


def _named(weight: str) -> str:
    """The name of a weight; the shipped files hold the maps of a feed-forward under older names."""
    for old, name in _NAMES.items():
        weight = weight.replace(f"feed_forward.{old}.", f"feed_forward.{name}.")
    return weight


def checkpoint_file(step: int) -> str:
    """The path of a checkpoint inside its model's folder."""
    return f"checkpoints/{step:06d}.safetensors"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json_object(path)
    except NotReadError:
        raise
    except ValueError as error:
        why = "is damaged" if isinstance(error, OddFileError) else error
        raise DamagedError(f"The file {path.name} of {path.parent.name} {why}.") from error
