"""The table of faults, the tests that cause them and the sentences of the app belong to each other."""

import ast
import re
from collections.abc import Iterator
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


def texts(node: ast.AST) -> Iterator[str]:
    """Each text of a module as it reads, with … in place of what is put in."""
    match node:
        case ast.Constant(value=str(value)):
            yield value
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from texts(child)


def put_together(piece: str, app: str) -> bool:
    """Whether the app has this text, or has it in two parts of which one is put into the other."""
    cuts = (at.start() for at in re.finditer(" ", piece))
    return piece in app or any(piece[:at] in app and piece[at + 1 :] in app for at in cuts)


def test_every_quoted_sentence_is_one_that_the_app_says() -> None:
    modules = [path for room in ("model", "viz") for path in (REPOSITORY / room).rglob("*.py")]
    app = "\n".join(text for path in modules for text in texts(ast.parse(path.read_text("utf-8"))))
    app += "\n".join(path.read_text("utf-8") for path in (REPOSITORY / "words").rglob("*.toml"))
    app = re.sub(r"\{\$[^}]*\}", "…", app)
    quoted = re.findall(r"“([^”|]+)”|\"([^\"|]+)\"", TABLE.read_text(encoding="utf-8"))
    pieces = {
        piece.strip(" .,")
        for pair in quoted
        for piece in re.split(r"…|(?<=\.) ", "".join(pair))
        if len(piece.split()) > 1
    }
    assert len(pieces) > 15
    assert {piece for piece in pieces if not put_together(piece, app)} == set()
