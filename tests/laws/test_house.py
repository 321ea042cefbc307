"""This repository obeys the laws of the house (tests/laws/house.py, tests/laws/sizes.py)."""

import ast
import re
from pathlib import Path

from tests.cases import cases
from tests.laws.house import (
    ROOMS,
    circles,
    climbing_imports,
    import_graph,
    lumber_rooms,
    repeated_types,
    wrong_imports,
)
from tests.laws.sizes import long_files, long_functions, written_files

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDES = (
    *("README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "llms.txt"),
    *(f"docs/{file.name}" for file in (REPOSITORY / "docs").glob("*.md")),
)
TOLD = re.compile(
    r"(?<![\w./-])(?<!\]\()(?:model|viz|pages|tests|bench|tools|docs|deploy|static|words|\.streamlit|\.ci)"
    r"/[\w./-]*[\w/]"
)
LINKED = re.compile(r"\]\((?!https?:|#)([^)#]+)")
MODULE = re.compile(r"python -m ([\w.]+)|`(model(?:\.\w+){2,})\(")
TO_BE_WRITTEN = {"pages/one_head.py", "deploy/kubernetes/ours"}  # by who follows the guide


@cases("broken", [
    wrong_imports, climbing_imports, circles, repeated_types, lumber_rooms, long_files,
    long_functions,
])  # fmt: skip
def test_no_law_is_broken(broken) -> None:
    assert broken(REPOSITORY) == []


def test_the_checker_sees_the_rooms_of_this_repository() -> None:
    graph = import_graph(REPOSITORY)
    assert {name.split(".")[0] for name in graph} == set(ROOMS)
    assert "torch" in graph["model.nn.attention"]
    assert "model.trace.arrays" in graph["model.trace.records"]
    assert {"viz/explorer/js/main.js", "viz/shell/style.css", "app.py"} <= set(
        written_files(REPOSITORY)
    )


def is_module(name: str) -> bool:
    """Whether a dotted name is a module of this repository, or of its package, or stands in one."""
    if name == "attention_lens":
        return (REPOSITORY / "deploy" / name / "__init__.py").is_file()
    path, _, last = name.removeprefix("attention_lens.").rpartition(".")
    home = REPOSITORY / Path(*path.split("."))
    if (home / f"{last}.py").is_file() or (home / last / "__main__.py").is_file():
        return True
    file = home.with_suffix(".py")
    return file.is_file() and f"def {last}(" in file.read_text(encoding="utf-8")


@cases("guide", GUIDES)
def test_every_path_that_a_guide_names_exists(guide) -> None:
    text = (REPOSITORY / guide).read_text(encoding="utf-8")
    folder = (REPOSITORY / guide).parent
    missing = {path for path in TOLD.findall(text) if not (REPOSITORY / path).exists()}
    missing |= {path for path in LINKED.findall(text) if not (folder / path).exists()}
    missing |= {name for found in MODULE.findall(text) if not is_module(name := "".join(found))}
    assert missing <= TO_BE_WRITTEN


def test_every_room_on_the_drawing_exists() -> None:
    drawing = (REPOSITORY / "docs" / "architecture.svg").read_text(encoding="utf-8")
    rooms = set(
        re.findall(r"\b(\w+/(?:\w+\.py)?)", "".join(re.findall(r"<text.*?</text>", drawing)))
    )
    assert len(rooms) > 10
    for room in rooms:
        assert any(
            (REPOSITORY / place / room).exists() for place in ("", "model", "viz", "viz/views")
        ), room


def test_the_product_asserts_nothing() -> None:
    """`python -O` leaves assertions out, and a visitor gets no sentence from one."""
    found = [
        f"{path}:{node.lineno}"
        for room in ROOMS
        for path in sorted({*REPOSITORY.glob(f"{room}.py"), *(REPOSITORY / room).rglob("*.py")})
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert found == []
