"""Opens a profile's folder as untrusted input: everything in it is checked before it is used."""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from model.nn.places import Head, Place
from model.profile.battery.asking import COLUMNS, LOOKS, both_verdicts
from model.profile.battery.kinds import KINDS, LOOKED_FOR, MEASURES, VERDICTS, HeadEffect
from model.profile.corpus import CHARACTERS
from model.profile.examples import CRITERIA, KEPT, ROW, Examples
from model.profile.sums import Sums, Whole, fields
from model.profile.tables import (
    BESIDE,
    HEADS,
    LABELS_OF_3,
    HeadsMetadata,
    ProfileScope,
    heads_hash,
    heads_schema,
    said_in,
)
from model.system.files import content_of
from model.system.foreign import refusing

MOST_BYTES = 2**30  # of one file, packed and in memory
MOST_HEADS = 2**16
MOST_LETTERS = 2**12  # of a text that is not a window
BYTES = 4  # of a letter in UTF-8, at the most
CHANGES = tuple(HeadEffect().numbers)  # the columns of the labels with what a head does
_Contents = tuple[ProfileScope, Sums, dict[int, str], pd.DataFrame]


def read(folder: Path) -> _Contents:
    """The profile of a folder. Raises ValueError where there is none, or a damaged one."""
    with _refusing(folder):
        return _read(folder)


def files_of(folder: Path) -> dict[str, Path]:
    """The files of a profile, each with its hash: "heads", "examples", "windows", "labels". Raises ValueError
    as `read`."""
    with _refusing(folder):
        said, _ = _heads(folder)
        for name in said.files:
            _named(folder, name, said)
        beside = {
            str(name): folder / f"{name}-{hash_}.parquet" for name, hash_ in said.files.items()
        }
        return {"heads": folder / HEADS, **beside}


def _refusing(folder: Path) -> AbstractContextManager[None]:
    if not (folder / HEADS).is_file():
        raise ValueError(f"There is no profile in {folder.name}.")
    return refusing(f"The profile in {folder.name} cannot be read:", pa.ArrowException)


def _heads(folder: Path) -> tuple[HeadsMetadata, pa.Table]:
    """What heads.parquet says and holds. Raises ValueError where it has not the hash that it names."""
    content = content_of(folder / HEADS, MOST_BYTES)
    metadata = (pq.read_schema(pa.BufferReader(content)).metadata or {})[b"profile"]
    said = said_in(metadata)
    heads = _table(content, heads_schema(said.window), MOST_HEADS)
    if said.heads is not None and heads_hash(json.loads(metadata), heads) != said.heads:
        raise ValueError("the file of its heads is damaged")
    return said, heads


def _read(folder: Path) -> _Contents:
    said, heads = _heads(folder)
    names = tuple(zip(heads["layer"].to_pylist(), heads["head"].to_pylist(), strict=True))
    # Each head is named once, after a sub-layer of attention.
    if not names or len(set(names)) != len(names):
        raise ValueError("its heads are not named once each")
    for layer in {layer for layer, _ in names}:
        place = Place.named(layer)
        if place.name != layer or place.layer is None or place.kind not in ("self", "cross"):
            raise ValueError(f"{layer!r} has no heads")
    if min(head for _, head in names) < 0:
        raise ValueError("a head has a number below 0")
    most = {
        "examples": len(names) * len(CRITERIA) * KEPT,
        "windows": len(names) * len(CRITERIA) * KEPT,
        "labels": len(names) * len(KINDS),
    }
    schemas = BESIDE | ({"labels": LABELS_OF_3} if said.version == 3 else {})
    beside = {
        name: _table(_named(folder, name, said), schema, most[name], said.window)
        for name, schema in schemas.items()
    }
    texts = dict(
        zip(*(beside["windows"][name].to_pylist() for name in ("window", "text")), strict=True)
    )
    sums = Sums(
        names,
        said.window,
        said.windows,
        said.tokens,
        _numbers(heads, said.window),
        _examples(beside["examples"], texts, said.window, len(names)),
    )
    return said.about, sums, texts, _labels(beside["labels"], names)


def _named(folder: Path, name: str, said: HeadsMetadata) -> bytes:
    """The bytes of one of the other files. Its name holds its hash. Raises ValueError where they differ."""
    hash_ = said.files[name]  # type: ignore[index]
    content = content_of(folder / f"{name}-{hash_}.parquet", MOST_BYTES)
    if hashlib.sha256(content).hexdigest()[: len(hash_)] != hash_:
        raise ValueError(f"the file of its {name} is damaged")
    return content


def _table(content: bytes, schema: pa.Schema, most: int, window: int = 0) -> pa.Table:
    """A table with these columns, at most so many rows, and a number or a text in each cell. Repeated texts
    are kept once in a file, so their length is known before any is unpacked."""
    texts = [field.name for field in schema if field.type == pa.string()]
    if not pq.read_schema(pa.BufferReader(content)).equals(schema):
        raise ValueError("it has other columns")
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
    cells = file.metadata.num_rows * sum(_cells(field.type) for field in schema)
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    packed = sum(one.total_byte_size for one in groups)
    if file.metadata.num_rows > most or max(8 * cells, packed) > MOST_BYTES:
        raise ValueError("it has too many rows")
    table = file.read()
    for name in schema.names:
        column = table[name].combine_chunks()
        values = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
        if column.null_count or values.null_count:
            raise ValueError(f"its {name} is missing in some rows")
        if name in texts:
            longest = window * CHARACTERS if name == "text" else MOST_LETTERS
            _check_lengths(column, longest * BYTES, name)
    return table


def _cells(kind: pa.DataType) -> int:
    """Numbers in one cell of a column."""
    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else 1


def _check_lengths(column: pa.DictionaryArray, most: int, name: str) -> None:
    """Each text is short enough, and all of them together."""
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    longest, all_ = pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    if longest > most or all_ > MOST_BYTES:
        raise ValueError(f"its {name} is too long")


def _numbers(heads: pa.Table, window: int) -> Mapping[str, Whole]:
    """(head, size) each: the sums. Those that count something are not negative."""
    found = {}
    for name, field in fields(window).items():
        column = heads[name].combine_chunks()
        flat = column if field.size == 1 else column.flatten()
        numbers = flat.to_numpy().reshape(len(heads), field.size).astype(np.int64)
        if field.bits == 0 and (numbers < 0).any():
            raise ValueError(f"its {name} is negative")
        found[name] = numbers
    return found


def _examples(table: pa.Table, texts: Mapping[int, str], window: int, heads: int) -> Examples:
    """The examples, in their order, each of a window whose text is there."""
    rows: NDArray[np.void] = np.empty(len(table), ROW)
    for name in ROW.names or ():
        rows[name] = table[name].to_numpy() if name != "criterion" else 0
    rows["criterion"] = [CRITERIA.index(name) for name in table["criterion"].to_pylist()]
    places = np.concatenate([rows["query"], rows["key"]])
    finite = np.isfinite(rows["score"]).all() and np.isfinite(rows["weight"]).all()
    inside = ((places >= 0) & (places < window)).all() and _are_below(rows["head"], heads)
    if not (
        finite and inside and {*rows["window"].tolist()} == {*texts} and len(texts) <= len(rows)
    ):
        raise ValueError("its examples do not fit its windows and heads")
    best = Examples.best(rows)
    if len(best.rows) != len(rows):
        raise ValueError("it has too many examples of one head")
    return best


def _are_below(numbers: NDArray[np.int32], end: int) -> bool:
    return bool(((numbers >= 0) & (numbers < end)).all())


def _labels(table: pa.Table, names: tuple[Head, ...]) -> pd.DataFrame:
    """The labels of all heads, or none at all. Those of version 3 have one verdict."""
    columns = {name: table[name].to_pylist() for name in table.column_names}
    looks_only = table.column_names == LABELS_OF_3.names
    of = [
        (layer, head, kind.name)
        for (layer, head), kind in product(names, LOOKED_FOR if looks_only else KINDS)
    ]
    found = list(zip(columns["layer"], columns["head"], columns["label"], strict=True))
    if found and found != of:
        raise ValueError("its labels are not those of its heads")
    for name in ("score", "control"):
        if not all(one != one or -0.01 <= one <= 1.01 for one in columns[name]):  # NaN: no score
            raise ValueError(f"a {name} of its labels is not between 0 and 1")
    if looks_only:
        return both_verdicts(pd.DataFrame(columns).astype(dict(LOOKS)), {})
    for name in CHANGES:
        if any(math.isinf(one) for one in columns[name]):
            raise ValueError(f"a {name} of its labels is not finite")
        if name.endswith("spread") and any(one < 0 for one in columns[name]):
            raise ValueError(f"a {name} of its labels is negative")
    for name, words in (("measure", MEASURES), ("does", VERDICTS)):
        if not {*columns[name]} <= {*words}:
            raise ValueError(f"a {name} of its labels is unknown")
    return pd.DataFrame(columns).astype(dict(COLUMNS))
