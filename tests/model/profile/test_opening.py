"""A profile from a stranger is refused with a sentence, whatever stands in its files."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from model.profile import open_profile, search
from model.profile.battery import KINDS
from model.profile.battery.asking import LOOKS
from model.profile.store import write_labels
from model.profile.tables import heads_hash
from tests.cases import cases

Said = dict[str, Any]


def write(folder: Path, said: Said, heads: pa.Table) -> None:
    """A file that holds the hash of what is in it, as far as that can be."""
    with suppress(pa.ArrowInvalid):
        said = said | {"heads": heads_hash(said, heads)}
    metadata = {"profile": json.dumps(said)}
    pq.write_table(heads.replace_schema_metadata(metadata), folder / "heads.parquet")


def opened(folder: Path) -> tuple[Said, pa.Table]:
    heads = pq.read_table(folder / "heads.parquet")
    return json.loads(heads.schema.metadata[b"profile"]), heads


def copied(saved_profile: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved_profile, tmp_path / "theirs"))


@pytest.fixture
def folder(saved_profile: Path, tmp_path: Path) -> Path:
    return copied(saved_profile, tmp_path)


@cases("changed", [
    {"version": 2},
    {"window": 10**12},
    {"window": 7},
    {"window": True},
    {"windows": 5},
    {"windows": -1},
    {"done": [[4, 0]]},
    {"done": [[0, 2], [1, 3]]},
    {"done": [[0, 10**30]]},
    {"weights": "../../etc/passwd"},
    {"files": {"examples": "../../../../e", "windows": "0" * 16, "labels": "0" * 16}},
    {"files": {}},
    {"model": "x" * 10_000},
    {"skipped": [[0, 5]]},
    {"versions": ["x" * 10_000]},
])  # fmt: skip
def test_metadata_that_cannot_be_are_refused(changed, saved_profile: Path, tmp_path: Path) -> None:
    folder = copied(saved_profile, tmp_path)
    said, heads = opened(folder)
    write(folder, said, heads)
    open_profile(folder)  # written again it is still one
    write(folder, said | changed, heads)
    with pytest.raises(ValueError, match="cannot be read"):
        open_profile(folder)


def replaced(name: str, values: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """A change of one column."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        field = table.schema.field(at)
        return table.set_column(at, field, pa.array(values(table[name].to_pylist()), field.type))

    return change


def first(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


def test_heads_that_cannot_be_are_refused(
    saved_profile: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for change in [
        replaced("layer", first("no.place")),
        replaced("layer", first("decoder.0.feed_forward")),
        replaced("head", lambda values: [0] * len(values)),
        replaced("head", first(-1)),
        replaced("rows", first(-1)),
        replaced("rows", first(None)),
        replaced("map", lambda values: [None, *values[1:]]),
        lambda heads: heads.drop_columns(["entropy"]),
        lambda heads: heads.append_column("more", pa.array([1] * len(heads))),
        lambda heads: heads.slice(0, 0),
        lambda heads: pa.concat_tables([heads, heads]),
    ]:
        with subtests.test(change=change):
            tmp_path = tmp_path_factory.mktemp("case")
            folder = copied(saved_profile, tmp_path)
            said, heads = opened(folder)
            write(folder, said, change(heads))
            with pytest.raises(ValueError, match="cannot be read"):
                open_profile(folder)


def test_other_files_that_cannot_be_are_refused(
    saved_profile: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name, change in [
        ("examples", replaced("query", first(10**6))),
        ("examples", replaced("key", first(-1))),
        ("examples", replaced("head", first(8))),
        ("examples", replaced("score", first(np.nan))),
        ("examples", replaced("weight", first(np.inf))),
        ("examples", replaced("window", first(99))),
        ("examples", replaced("criterion", first("best"))),
        ("examples", lambda table: pa.concat_tables([table] * 3)),
        ("windows", replaced("text", first("x" * 100_000))),
        ("windows", replaced("text", first(None))),
        ("windows", replaced("window", first(99))),
        ("labels", replaced("score", first(2.0))),
        ("labels", replaced("label", first("genius"))),
        ("labels", replaced("reason", first("x" * 100_000))),
        ("labels", replaced("effect", first(np.inf))),
        ("labels", replaced("left_out_control", first(-np.inf))),
        ("labels", replaced("left_out_spread", first(-0.1))),
        ("labels", replaced("measure", first("inches"))),
        ("labels", replaced("does", first("everything"))),
        ("labels", replaced("effect_reason", first(None))),
        ("labels", lambda table: table.slice(1)),
    ]:
        with subtests.test(name=name, change=change):
            tmp_path = tmp_path_factory.mktemp("case")
            folder = copied(saved_profile, tmp_path)
            said, heads = opened(folder)
            file = folder / f"{name}-{said['files'][name]}.parquet"
            pq.write_table(change(pq.read_table(file)), file)
            with pytest.raises(
                ValueError, match="is damaged"
            ):  # its bytes are not those of its name
                open_profile(folder)
            hash_ = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
            file.rename(folder / f"{name}-{hash_}.parquet")
            write(folder, said | {"files": said["files"] | {name: hash_}}, heads)
            with pytest.raises(ValueError, match="cannot be read"):
                open_profile(folder)


def exchanged(folder: Path, said: Said, heads: pa.Table, labels: pa.Table) -> None:
    """Other labels in the place of a profile's own."""
    file = folder / "labels.parquet"
    pq.write_table(labels, file)
    hash_ = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    file.rename(folder / f"labels-{hash_}.parquet")
    write(folder, said | {"files": said["files"] | {"labels": hash_}}, heads)


def test_a_profile_of_version_3_opens_and_does_not_know_what_its_heads_do(
    saved_profile: Path, tmp_path: Path
) -> None:
    folder = copied(saved_profile, tmp_path)
    said, heads = opened(folder)
    table = pq.read_table(folder / f"labels-{said['files']['labels']}.parquet")
    of_3 = [kind.name for kind in KINDS if not kind.like]
    looks = table.filter(pc.is_in(table["label"], pa.array(of_3))).select(list(LOOKS))
    exchanged(folder, said | {"version": 3}, heads, looks)
    now, then = (open_profile(one) for one in (saved_profile, folder))
    assert len(then.labels) == len(now.labels) == len(heads) * len(KINDS)
    known = then.labels[then.labels["label"].isin(of_3)]
    for column in (*LOOKS, "corpus"):
        mine = now.labels.loc[known.index, column]
        assert known[column].equals(mine), column
    assert (then.labels["does"] == "").all()
    assert then.labels["left_out"].isna().all()
    assert not then.labels[then.labels["label"] == "copy_suppression"]["given"].any()
    assert [then.label(head) for head in then.sums.heads].count("induction") == 4
    then.save(tmp_path / "again")  # and is of the latest version then
    assert open_profile(tmp_path / "again").labels.equals(then.labels)
    exchanged(folder, said, heads, looks)
    with pytest.raises(ValueError, match="other columns"):
        open_profile(folder)


def test_a_changed_bit_is_refused_or_changes_no_number(saved_profile: Path, folder: Path) -> None:
    whole = open_profile(saved_profile)
    for file in sorted(folder.iterdir()):
        content, damaged = file.read_bytes(), 0
        for at in np.random.default_rng(1).integers(0, 8 * len(content), 120).tolist():
            changed = bytearray(content)
            changed[at // 8] ^= 1 << at % 8
            file.write_bytes(changed)
            try:
                found = open_profile(folder)
            except ValueError:
                damaged += 1
            else:
                assert found.about == whole.about
                assert found.heads.equals(whole.heads)
                assert found.labels.equals(whole.labels)
        file.write_bytes(content)
        assert damaged > 60, file.name


def test_a_hash_that_is_missing_is_refused_and_old_profiles_have_none(folder: Path) -> None:
    said, heads = opened(folder)
    bare = {name: value for name, value in said.items() if name != "heads"}
    for version, opens in ((4, True), (5, False)):
        metadata = {"profile": json.dumps(bare | {"version": version})}
        pq.write_table(heads.replace_schema_metadata(metadata), folder / "heads.parquet")
        if opens:
            assert len(open_profile(folder).heads) == len(heads)
        else:
            with pytest.raises(ValueError, match="no hash"):
                open_profile(folder)


def test_a_search_reads_no_damaged_file(saved_profile: Path, tmp_path: Path) -> None:
    for name in ("heads", "examples", "windows"):
        folder = copied(saved_profile, tmp_path / name)
        (file,) = folder.glob(f"{name}*.parquet")
        file.write_bytes(file.read_bytes().replace(b"PAR1", b"PAR2"))
        with pytest.raises(ValueError, match="cannot be read"):
            search(folder, "a")


def test_other_labels_leave_the_rest_of_a_profile_as_it_is(
    saved_profile: Path, tmp_path: Path
) -> None:
    folder = copied(saved_profile, tmp_path)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    known = open_profile(folder).labels
    write_labels(folder, known.assign(score=known["score"] / 2))
    after = {file.name: file.read_bytes() for file in folder.iterdir()}
    others = {name for name in before if not name.startswith(("labels", "heads"))}
    assert {*after} & {*before} == {*others, "heads.parquet"}
    assert all(after[name] == before[name] for name in others)
    (said, one), (changed, other) = map(opened, (saved_profile, folder))
    assert one.equals(other)
    assert changed | {name: said[name] for name in ("files", "heads")} == said
    assert open_profile(folder).labels["score"].equals(known["score"] / 2)
    write_labels(folder, known)
    assert {file.name for file in folder.iterdir()} == {*before}
    assert opened(folder)[0] == said


def test_a_short_file_that_unpacks_to_much_is_refused_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (folder / "heads.parquet").stat().st_size < 100_000
    monkeypatch.setattr("model.profile.opening.MOST_BYTES", 100_000)
    with pytest.raises(ValueError, match="too many rows"):
        open_profile(folder)
