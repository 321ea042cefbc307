"""DuckDB answers from the files of one folder, and what somebody types is never a part of a query."""

import re
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from model.profile import labelled, open_profile, search
from model.profile.searching import connected
from tests.cases import cases

GUIDE = Path(__file__).parents[3] / "docs" / "profiles.md"
INDUCTION = ("decoder.1.self", 2)


def test_examples_are_found_by_their_tokens(saved_profile: Path) -> None:
    book = open_profile(saved_profile)
    every = [
        one
        for head in book.sums.heads
        for criterion in ("weight", "carried", "effect", "chance")
        for one in book.examples(head, criterion).itertuples()
    ]
    found = search(saved_profile, "Q", most=10_000)
    assert len(found) == sum("q" in (one.query_token, one.key_token) for one in every) > 0
    assert found["score"].is_monotonic_decreasing
    assert set(found["text"]) == {"q r q r q r"}
    mine = book.search("q", INDUCTION, "weight")
    assert mine[["layer", "head"]].drop_duplicates().values.tolist() == [list(INDUCTION)]
    assert mine["criterion"].unique().tolist() == ["weight"]
    known = book.examples(INDUCTION, "weight").set_index("window")
    for one in mine.itertuples():
        assert known["score"][one.window] == one.score
        assert known["query_token"][one.window] == one.query_token
    assert search(saved_profile, "qr").empty
    assert len(search(saved_profile, "q", whole=True, most=10_000)) == len(found)


@cases("typed", ["' OR true --", "%", "_", "q' UNION SELECT 1 --", "$text", "\0"])
def test_what_is_typed_is_only_a_text(typed, saved_profile: Path) -> None:
    assert search(saved_profile, typed).empty
    assert search(saved_profile, "q", (typed, 0)).empty
    assert labelled(saved_profile, typed).empty


def test_what_cannot_be_searched_is_refused(saved_profile: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no text"):
        search(saved_profile, " ")
    with pytest.raises(ValueError, match="no criterion"):
        search(saved_profile, "q", criterion="best")
    with pytest.raises(ValueError, match="no profile"):
        search(tmp_path, "q")
    file = shutil.copytree(saved_profile, tmp_path / "theirs") / "heads.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="cannot be read"):
        search(file.parent, "q")


def test_a_label_finds_its_heads(saved_profile: Path) -> None:
    found = labelled(saved_profile, "induction")
    table = open_profile(saved_profile).labels
    given = table[(table["label"] == "induction") & table["given"]]
    assert sorted(found["score"], reverse=True) == found["score"].tolist()
    assert set(found["score"]) == set(given["score"])
    assert labelled(saved_profile, "induction", least=1.0).empty
    assert len(labelled(saved_profile, "induction", given=False)) == 8


def test_the_connection_reads_no_other_file_and_stays_so(saved_profile: Path) -> None:
    (mine,) = saved_profile.glob("labels-*.parquet")
    other = saved_profile / "heads.parquet"
    with connected([mine]) as connection:
        count = connection.execute("SELECT count(*) FROM read_parquet(?)", [str(mine)]).fetchone()
        assert count[0] > 0
        for query in (
            f"FROM read_parquet('{other}')",
            "FROM read_text('/etc/hostname')",
            "FROM read_parquet('https://localhost/x.parquet')",
            f"COPY (SELECT 1) TO '{saved_profile}/new.csv'",
            f"ATTACH '{saved_profile}/new.db'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET threads = 2",
            "FROM mine",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(query)


def test_the_guides_queries_run(saved_profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(saved_profile.parent)
    shares, examples = re.findall(r"```sql\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    book = open_profile(saved_profile)
    best = book.heads.nlargest(5, "induction")
    with duckdb.connect() as connection:
        found = connection.execute(shares).df()
        assert found[["layer", "head"]].values.tolist() == best[["layer", "head"]].values.tolist()
        assert np.allclose(found["induction"], best["induction"], rtol=1e-9)
        rows = connection.execute(examples).df()
    strongest = max(book.examples(head, "weight")["score"].max() for head in book.sums.heads)
    assert rows["score"][0] == strongest
