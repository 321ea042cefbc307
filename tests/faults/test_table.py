"""The table of faults and the tests that cause them belong to each other."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TABLE = REPOSITORY / "docs" / "faults.md"
OF_FAULTS = [*sorted((REPOSITORY / "tests" / "faults").glob("test_*.py")),
             REPOSITORY / "tests" / "browser" / "test_faults.py"]  # fmt: skip


def named() -> list[tuple[str, str]]:
    """(file, test) of each row."""
    return re.findall(r"\| `(tests/[\w/]+\.py)::(\w+)` \|$", TABLE.read_text(), re.MULTILINE)


def names_in(file: Path) -> set[str]:
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_names_a_test_that_exists_and_no_two_the_same() -> None:
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(named()) == len(set(named())) > 30
    for file, test in named():
        assert test in names_in(REPOSITORY / file), f"{file} has no {test}"


def test_every_test_of_faults_stands_in_the_table() -> None:
    for file in OF_FAULTS:
        if file == Path(__file__).resolve():
            continue
        in_table = {test for path, test in named() if REPOSITORY / path == file}
        assert names_in(file) == in_table, file.name
