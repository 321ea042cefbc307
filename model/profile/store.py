"""A profile on disk: one folder of Parquet files, which DuckDB, pandas and Polars read.

`heads.parquet`: one row a head, with every sum as whole numbers. `examples-….parquet`: one row an example.
`windows-….parquet`: the texts of the windows that examples stand in. `labels-….parquet`: one row a head and
label. The metadata of heads.parquet say what was profiled, and how, and which other files belong to it; each
name of these holds their hash, and the metadata that of heads.parquet itself.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from model.profile.battery.asking import COLUMNS
from model.profile.examples import CRITERIA, Examples
from model.profile.sums import Sums, fields
from model.profile.tables import (
    BESIDE,
    FORMAT,
    HEADS,
    VERSION,
    ProfileScope,
    heads_hash,
    heads_schema,
)
from model.system.files import made_folder, write_whole


def write(
    folder: Path, about: ProfileScope, sums: Sums, texts: Mapping[int, str], labels: pd.DataFrame
) -> None:
    """Writes a profile. A reader finds the old one or the new one, never a mixture, whenever the writer ends:
    heads.parquet is exchanged last, and only then are the files deleted that belonged to the old one.

    Args:
        folder: is made where it is missing.
        texts: by the number of the window; those of all examples.
        labels: one row a head and label, with the columns of `COLUMNS`.
    """
    made_folder(folder)
    kept = sorted(set(sums.examples.rows["window"].tolist()))
    columns: dict[str, dict[str, object]] = {
        "examples": _example_columns(sums.examples),
        "windows": {"window": kept, "text": [texts[one] for one in kept]},
        "labels": {name: labels[name].to_numpy() for name in COLUMNS},
    }
    hashes = {
        name: _written(folder, name, pa.table(columns[name], schema))
        for name, schema in BESIDE.items()
    }
    _exchange(folder, _head_table(about, sums, hashes), hashes)


def write_labels(folder: Path, labels: pd.DataFrame) -> None:
    """Writes other labels into a profile's folder. Its other files stay as they are, and of heads.parquet the
    metadata alone change. Raises OSError and ValueError for a folder without a profile."""
    heads = pq.read_table(folder / HEADS)
    description = json.loads((heads.schema.metadata or {})[b"profile"])
    table = pa.table({name: labels[name].to_numpy() for name in COLUMNS}, BESIDE["labels"])
    files = description["files"] | {"labels": _written(folder, "labels", table)}
    _exchange(folder, _hashed(heads, description | {"version": VERSION, "files": files}), files)


def _hashed(heads: pa.Table, description: Mapping[str, Any]) -> pa.Table:
    """The table with its metadata, and in these the hash of both."""
    said = {**description, "heads": heads_hash(description, heads)}
    return heads.replace_schema_metadata({"profile": json.dumps(said)})


def _exchange(folder: Path, heads: pa.Table, hashes: Mapping[str, str]) -> None:
    """Exchanges heads.parquet, and deletes the files that belonged to the old one."""
    write_whole(folder / HEADS, _packed(heads))
    for name, hash_ in hashes.items():
        for old in folder.glob(f"{name}-*.parquet"):
            if old.name != f"{name}-{hash_}.parquet":
                old.unlink()


def _written(folder: Path, name: str, table: pa.Table) -> str:
    """Writes one of the other files. Returns the hash in its name."""
    content = _packed(table)
    hash_ = hashlib.sha256(content).hexdigest()[:16]
    write_whole(folder / f"{name}-{hash_}.parquet", content)
    return hash_


def _packed(table: pa.Table) -> bytes:
    """A file of a table."""
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _head_table(about: ProfileScope, sums: Sums, hashes: Mapping[str, str]) -> pa.Table:
    columns: dict[str, object] = {
        "layer": [name for name, _ in sums.heads],
        "head": [head for _, head in sums.heads],
    }
    for name, field in fields(sums.window).items():
        flat = pa.array(sums.numbers[name].ravel(), pa.int64())
        columns[name] = (
            flat if field.size == 1 else pa.FixedSizeListArray.from_arrays(flat, field.size)
        )
    description = asdict(about) | {
        "format": FORMAT,
        "version": VERSION,
        "windows": sums.windows,
        "tokens": sums.tokens,
        "files": hashes,
        "fields": {name: asdict(field) for name, field in fields(sums.window).items()},
    }
    return _hashed(pa.table(columns, heads_schema(sums.window)), description)


def _example_columns(examples: Examples) -> dict[str, object]:
    rows = examples.rows
    columns = {name: rows[name] for name in rows.dtype.names or ()}
    return columns | {"criterion": np.array(CRITERIA)[rows["criterion"]]}
