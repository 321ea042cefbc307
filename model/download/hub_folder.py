"""A folder in the hub's layout, checked before anything of it is loaded; and what its config says of
quantized weights.

Weights are read from safetensors only: a pickle can run code when it is opened.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError, safe_open

from model.system.files import LARGEST_JSON, NotReadError, OddFileError, json_object, open_file

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER = re.compile(  # of which one has to be there
    r"tokenizer(_config)?\.json|(\w+_)?vocab(-\w+)?\.json|vocab\.txt|dict\.txt|byte_maps\.json|bpe\.codes"
    r"|prophetnet\.tokenizer|[\w.-]+\.spm|(tokenizer|sp\w+|sentencepiece(\.bpe)?)\.model"
)
WANTED = re.compile(  # what a model needs
    rf"{TOKENIZER.pattern}|merges\.txt|emoji\.json|word_(shape|pronunciation)\.json"
    r"|config\.json|generation_config\.json|special_tokens_map\.json|added_tokens\.json|chat_template\.jinja"
    r"|model\.safetensors|model(\.safetensors)?-\d+-of-\d+\.safetensors|model\.safetensors\.index\.json"
)
FLOAT_BYTES = 4  # what each number takes once it is loaded


class DescribedModel(BaseModel):
    """What this app itself reads of a config; the library checks the rest."""

    model_config = ConfigDict(strict=True)

    model_type: str | None = None
    architectures: list[str] | None = None
    is_encoder_decoder: bool | None = None
    tie_word_embeddings: bool | None = None


def described(folder: Path) -> dict[str, Any]:
    """The config of a folder. Raises ValueError for none, or one that is damaged."""
    read = read_json(folder / CONFIG)
    try:
        DescribedModel.model_validate(read)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(
            f"its config says of {wrong['loc'][0]} what is not so: {wrong['msg']}"
        ) from error
    return read


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that hold the weights. Raises ValueError where they are missing,
    incomplete or pickles, and where an adapter, which is not read, would change them."""
    if adapter := next(folder.glob("adapter_model.*"), None):
        raise ValueError(
            f"an adapter lies beside it ({adapter.name}), and adapters are not read: merge it into the "
            "weights, or move it away to see the model without it"
        )
    files, named_files = [folder / WEIGHTS], list[Path]()
    if (folder / INDEX).is_file():
        named = read_json(folder / INDEX).get("weight_map")
        names = set(map(str, named.values())) if isinstance(named, dict) else set()
        if not names or not all(name.endswith(".safetensors") for name in names):
            raise ValueError(f"its {INDEX} is damaged")
        named_files = [folder / name for name in sorted(names)]
        if not files[0].is_file():  # the library's choice: of both it reads the whole file
            files = named_files
    _check_places(folder, [folder / CONFIG, *files, *named_files])
    for file in files:
        if file.is_file():
            continue
        if any(next(folder.glob(pattern), None) for pattern in _PICKLES):
            raise ValueError(
                "its weights are a pickle, which can run code when it is opened; only safetensors "
                "are read"
            )
        raise ValueError(f"its weights {file.name} are missing")
    return files


def own_code(folder: Path) -> tuple[str, ...]:
    """The files of code that the configs of a folder name, "modeling_own.py" for instance: they are never
    run. Raises ValueError for a config that is damaged."""
    files = [folder / name for name in (CONFIG, TOKENIZER_CONFIG) if (folder / name).is_file()]
    maps = [read_json(file).get("auto_map") for file in files]
    given = [one for named in maps if isinstance(named, Mapping) for one in named.values()]
    classes = [one for value in given for one in (value if isinstance(value, list) else [value])]
    modules = (
        one.rpartition("--")[2].rpartition(".")[0] for one in classes if isinstance(one, str)
    )
    return tuple(dict.fromkeys(f"{module}.py" for module in modules if module))


def tensors(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The kind of numbers ("F32", "U8" …) and the shape of each of the weights, from the headers of their
    files. Raises ValueError for files that are damaged, or whose headers do not fit them."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="numpy") as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no dictionary
                    part = opened.get_slice(name)
                    found[name] = part.get_dtype(), tuple(part.get_shape())
        except OSError as error:
            raise NotReadError(file.name, folder.name, error) from error
        except (SafetensorError, UnicodeDecodeError) as error:
            raise ValueError(
                f"its weights {file.name} are damaged or cut short ({error})"
            ) from error
    return found


def check_memory(size: int, most_bytes: int) -> None:
    """Raises ValueError for weights over a bound of bytes; 0 is no bound."""
    if most_bytes and size > most_bytes:
        raise ValueError(
            f"it needs {size / 1e6:,.0f} MB of memory and this app keeps {most_bytes / 1e6:,.0f} MB "
            "of models (ATTENTION_MODEL_MB)"
        )


def read_json(path: Path) -> dict[str, Any]:
    """The object that a file of a folder holds. Raises ValueError for none, or a damaged one."""
    try:
        return json_object(path)
    except (NotReadError, OddFileError):
        raise
    except ValueError as error:
        raise ValueError(f"its {path.name} {error}") from error


def check_file(folder: Path, file: Path) -> None:
    """Raises ValueError for a file that lies elsewhere, is not an ordinary one, or is too large. For files
    that a library reads whole."""
    _check_places(folder, [file])
    try:
        with open_file(file) as opened:
            size = os.fstat(opened.fileno()).st_size
    except OSError as error:
        raise NotReadError(file.name, folder.name, error) from error
    if size > LARGEST_JSON:
        raise ValueError(f"its {file.name} is larger than {LARGEST_JSON:,} bytes")


def _check_places(folder: Path, files: Iterable[Path]) -> None:
    """Raises ValueError for files outside the folder, reached by ".." or by a link. The hub's own cache links
    into the folder of its blobs."""
    home = folder.resolve()
    allowed = (home, home.parent.parent / "blobs")
    for file in files:
        inside = file.is_relative_to(folder) and ".." not in file.relative_to(folder).parts
        if not inside or not any(file.resolve().is_relative_to(place) for place in allowed):
            raise ValueError(f"its file {file.name} lies outside its folder")


_BITS = {"fp8": 8, "mxfp4": 4}  # where the method says it
_IN_ONE = {"U8": 2, "I32": 8}  # numbers of 4 bits that lie in one of a file's, at most
_KINDS = {"U8", "I8", "I32", "F8_E4M3", "F8_E5M2"}


@dataclass(frozen=True)
class Packed:
    """How a config says that the weights are quantized."""

    method: str  # "" where that is not told
    bits: int | None

    @property
    def words(self) -> str:
        """“bitsandbytes, 4 bits”, as far as it is known."""
        named = [self.method[:40]] if self.method else []
        named += [f"{self.bits} bits"] if self.bits is not None else []
        return ", ".join(named) or "in an unknown way"


def packed(folder: Path) -> Packed | None:
    """How the weights of a folder are quantized; None where its config does not say so."""
    said = described(folder).get("quantization_config")
    if not said:
        return None
    known = said if isinstance(said, Mapping) else {}
    method = known.get("quant_method")
    if not isinstance(method, str):
        method = "bitsandbytes" if {"load_in_4bit", "load_in_8bit"} & known.keys() else ""
    bits = next(_bits(known), _BITS.get(method))
    return Packed(method, bits)


def _bits(known: Mapping[str, object]) -> Iterator[int]:
    """What a description of quantized weights says of their bits."""
    yield from (size for size in (4, 8) if known.get(f"load_in_{size}bit") is True)
    groups = known.get("config_groups")  # of compressed tensors
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            found = weights.get("num_bits")
            yield from (found,) if isinstance(found, int) else ()
    bits = known.get("bits")
    yield from (bits,) if isinstance(bits, int) else ()


def holds_packed(folder: Path) -> bool:
    """Whether any of its files' numbers are of a kind that weights are packed into."""
    return any(kind in _KINDS for kind, _ in tensors(folder).values())


def numbers(folder: Path) -> int:
    """How many numbers the weights are once they are loaded, at most. Raises ValueError for damaged files."""
    many = _IN_ONE if packed(folder) else {}
    return sum(math.prod(shape) * many.get(kind, 1) for kind, shape in tensors(folder).values())


def checked_size(folder: Path) -> int:
    """Bytes that the weights take once they are loaded. Raises ValueError for damaged files."""
    return numbers(folder) * FLOAT_BYTES
