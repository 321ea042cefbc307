"""What a folder's config says of quantized weights, and how many numbers they are once they are unpacked."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from model.download.hub_folder import FLOAT_BYTES, described, tensors

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
