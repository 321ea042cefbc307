"""The tables that a profile's folder holds: their columns, and what its metadata say."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as columns
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import ConfigDict, Field

from model.profile.battery.asking import COLUMNS, LOOKS
from model.profile.examples import ROW
from model.profile.sums import fields
from model.system.foreign import validated

FORMAT, VERSION = "attention-visualizer profile", 5
HASHED = 5  # the first version whose heads.parquet has a hash of itself
HEADS = "heads.parquet"
_TYPES = {str: pa.string(), int: pa.int32(), float: pa.float64(), bool: pa.bool_()}
# The files beside heads.parquet, each with its hash in its name.
BESIDE = {
    "examples": pa.schema(
        [
            ("criterion", pa.string())
            if name == "criterion"
            else (name, pa.from_numpy_dtype(ROW[name]))
            for name in ROW.names or ()
        ]
    ),
    "windows": pa.schema([("window", pa.int64()), ("text", pa.string())]),
    "labels": pa.schema([(name, _TYPES[kind]) for name, kind in COLUMNS.items()]),
}
LABELS_OF_3 = pa.schema([(name, _TYPES[kind]) for name, kind in LOOKS.items()])  # of version 3
LARGEST_WINDOW = 2**20
TableCount = Annotated[int, Field(ge=0, lt=2**63)]
TableText = Annotated[str, Field(max_length=4_096)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
ShortHash = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


@dataclass(frozen=True)
class ProfileScope:
    """What was profiled. Profiles over the same, by `subject`, can be added."""

    model: TableText
    weights: Hash  # SHA-256 of the model's weights
    corpus: Hash  # SHA-256 of the corpus' bytes
    corpus_name: TableText
    by_line: bool
    window: Annotated[int, Field(ge=1, le=LARGEST_WINDOW)]  # most tokens of a window
    done: tuple[
        tuple[TableCount, TableCount], ...
    ] = ()  # windows, from the first to before the last
    # windows that the model does not read, and why
    skipped: tuple[tuple[TableCount, TableText], ...] = ()
    # of what computed it, on all machines: "torch 2.13.0+cpu"
    versions: tuple[Annotated[str, Field(max_length=100)], ...] = ()

    @property
    def subject(self) -> "ProfileScope":
        """Only what a run is told when it begins."""
        return replace(self, done=(), skipped=(), versions=())


@dataclass(frozen=True, kw_only=True)
class HeadsMetadata(ProfileScope):
    """The metadata of heads.parquet."""

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore")

    format: Literal["attention-visualizer profile"] = "attention-visualizer profile"
    version: Literal[3, 4, 5] = 5  # 3: its labels say where heads look, and not what they do
    windows: TableCount
    tokens: TableCount
    files: dict[Literal["examples", "windows", "labels"], ShortHash]
    heads: Hash | None = None  # `heads_hash`; files of versions 3 and 4 have none

    @property
    def about(self) -> ProfileScope:
        return ProfileScope(**{one.name: getattr(self, one.name) for one in columns(ProfileScope)})


def said_in(metadata: bytes) -> HeadsMetadata:
    """Raises ValueError for anything but the metadata of a profile, and for windows that cannot be."""
    said = validated(HeadsMetadata, metadata)
    if said.heads is None and said.version >= HASHED:
        raise ValueError("its heads have no hash")
    ends = [0, *(number for one in said.done for number in one)]
    if ends != sorted(ends) or any(first == end for first, end in said.done):
        raise ValueError("its windows are in no order")
    if sum(end - first for first, end in said.done) != said.windows + len(said.skipped):
        raise ValueError("its windows do not add up")
    return said


def heads_schema(window: int) -> pa.Schema:
    """One row a head, with every sum as whole numbers."""
    sums = [
        (name, pa.int64() if field.size == 1 else pa.list_(pa.int64(), field.size))
        for name, field in fields(window).items()
    ]
    return pa.schema([("layer", pa.string()), ("head", pa.int32()), *sums])


def heads_hash(said: Mapping[str, Any], heads: pa.Table) -> str:
    """SHA-256 of what heads.parquet holds: of its metadata but for this hash, and of its names and numbers,
    however they are packed."""
    told = {name: value for name, value in said.items() if name != "heads"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name in heads.schema.names:
        column = heads[name].combine_chunks()
        if pa.types.is_fixed_size_list(column.type):
            column = column.flatten()
        if pa.types.is_integer(column.type):
            digest.update(column.to_numpy().astype("<i8").tobytes())
        else:
            digest.update(json.dumps(column.to_pylist()).encode())
    return digest.hexdigest()


def no_labels() -> pd.DataFrame:
    """The labels of a profile that has none."""
    return pd.DataFrame({name: np.array([], kind) for name, kind in COLUMNS.items()}).astype(
        COLUMNS
    )
