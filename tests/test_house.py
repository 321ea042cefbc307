"""Imports point one way: app, pages -> viz -> model, and within each of these down its rooms. No circles, no
lumber room.

The checker reads the source of every module, follows the imports from file to file, and runs
nothing. It is a function of a folder, so that each rule is also tried on a small planted house.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
ROOMS = ("app", "pages", "viz", "model")
LUMBER_ROOMS = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "base"}
# Which modules may never reach which others, directly or through any module they import.
FORBIDDEN = {
    "model": {"streamlit", "plotly", "viz", "pages", "app"},
    "viz": {"pages", "app"},
    "viz.figures": {"streamlit"},
    "viz.notation": {"streamlit"},
}
# The rooms of a package from the ground up: each imports itself and those before it.
FLOORS = {
    "model": (
        "system",
        "nn",
        "trace",
        "download",
        "arithmetic",
        "run",
        "worked",
        "analysis",
        "hub",
        "loading",
        "training",
        "serving",
    ),
    "viz": (
        "notation",
        "telemetry",
        "figures",
        "explorer",
        "state",
        "elements",
        "saving",
        "questions",
        "tour",
        "shell",
        "views",
        "server",
    ),
}


def module_files(root: Path) -> dict[str, Path]:
    """Each module of the house by its dotted name; a package has the name of its folder."""
    files = [root / "app.py"] if (root / "app.py").exists() else []
    for room in ROOMS:
        files += sorted((root / room).rglob("*.py"))
    return {module_name(file.relative_to(root)): file for file in files}


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(name: str, file: Path) -> Iterator[str]:
    """Every dotted name a module asks for, wherever in the file and however it is spelled.

    `from a import b` gives `a.b`: the caller knows whether that is a module or a thing inside one.
    """
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), filename=str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = ".".join(filter(None, [parent_package(package, node.level), node.module]))
            yield from (f"{source}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and spells_an_import(node):
            yield ast.literal_eval(node.args[0])


def parent_package(package: str, level: int) -> str:
    """Where the dots of a relative import lead; nothing for an absolute one."""
    if level == 0:
        return ""
    parts = package.split(".")
    return ".".join(parts[: len(parts) - (level - 1)])


def spells_an_import(call: ast.Call) -> bool:
    """Whether this is `import_module("name")` or `__import__("name")` with the name written out."""
    function = ast.unparse(call.func).removeprefix("importlib.")
    named = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return named and function in {"__import__", "import_module"}


def import_graph(root: Path) -> dict[str, set[str]]:
    """What each module of the house imports: modules of the house, and others by their first name.

    Importing `viz.figures.curve` runs `viz` and `viz.figures` too, so those count as imported.
    """
    files = module_files(root)
    return {
        name: {
            target
            for asked in [*imported_names(name, file), *ancestors(name)]
            for target in known_modules(asked, files)
        }
        for name, file in files.items()
    }


def ancestors(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def known_modules(asked: str, files: dict[str, Path]) -> set[str]:
    """The modules of the house that an import of this name runs, and the name's first part."""
    return {name for name in [*ancestors(asked), asked] if name in files} | {asked.split(".")[0]}


def chains(graph: dict[str, set[str]], start: str) -> dict[str, list[str]]:
    """For everything a module reaches, one shortest way to it."""
    ways = {start: [start]}
    waiting = [start]
    for name in waiting:
        for target in sorted(graph.get(name, ())):
            if target not in ways:
                ways[target] = [*ways[name], target]
                waiting.append(target)
    return ways


def wrong_imports(root: Path) -> list[str]:
    """One line for each forbidden module that a module of the house reaches."""
    graph = import_graph(root)
    return [
        " -> ".join(ways[target])
        for room, forbidden in FORBIDDEN.items()
        for name in graph
        if name == room or name.startswith(f"{room}.")
        for ways in [chains(graph, name)]
        for target in sorted(forbidden & ways.keys())
    ]


def imported_modules(name: str, file: Path, files: dict[str, Path]) -> set[str]:
    """The modules of the house that one asks for by name, without the packages around them."""
    asked = {
        known[-1]
        for target in imported_names(name, file)
        if (known := [one for one in [*ancestors(target), target] if one in files])
    }
    return asked - {name}


def climbing_imports(root: Path) -> list[str]:
    """One line for each import of a room above the importer's own, and each module that is in no room."""
    files = module_files(root)
    found = []
    for name, file in files.items():
        package, *rooms = name.split(".")
        if package not in FLOORS or not rooms:
            continue
        floors = FLOORS[package]
        if rooms[0] not in floors:
            found.append(f"{name} is in no room")
            continue
        found += [
            f"{name} -> {target}"
            for target in sorted(imported_modules(name, file, files))
            if target.startswith(f"{package}.")
            and target.split(".")[1] in floors[floors.index(rooms[0]) + 1 :]
        ]
    return found


def circles(root: Path) -> list[set[str]]:
    """Modules that import each other, directly or through others."""
    files = module_files(root)
    graph = {name: imported_modules(name, file, files) for name, file in files.items()}
    reached = {name: set(chains(graph, name)) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        together = {other for other in reached[name] if name in reached[other]}
        if len(together) > 1 and together not in found:
            found.append(together)
    return found


def lumber_rooms(root: Path) -> list[str]:
    """Modules and folders whose name says nothing of what is inside."""
    return [name for name in module_files(root) if LUMBER_ROOMS & set(name.split("."))]


def build(root: Path, sources: dict[str, str]) -> Path:
    """A small house with these files and their sources."""
    for path, source in sources.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(source)
    return root


def test_imports_point_one_way() -> None:
    assert wrong_imports(REPOSITORY) == []


def test_imports_go_down_the_rooms() -> None:
    assert climbing_imports(REPOSITORY) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(REPOSITORY) == []


def test_no_room_is_a_lumber_room() -> None:
    assert lumber_rooms(REPOSITORY) == []


def test_the_checker_sees_the_rooms_of_this_repository() -> None:
    graph = import_graph(REPOSITORY)
    assert {name.split(".")[0] for name in graph} == set(ROOMS)
    assert "torch" in graph["model.nn.attention"]
    assert "model.trace.arrays" in graph["model.trace.records"]


def test_an_honest_house_passes(tmp_path: Path) -> None:
    sources = {
        "app.py": "import streamlit\nfrom viz.shell.frame import open_app",
        "pages/heads.py": "from viz.shell import page\nfrom viz.figures import grid",
        "viz/__init__.py": "",
        "viz/shell/__init__.py": "",
        "viz/shell/page.py": "import streamlit\nfrom model import Trace\nfrom viz.figures import grid",
        "viz/figures/grid.py": "import plotly.express\nfrom model.trace.trace import Trace",
        "viz/notation/formulas.py": "from model.trace.trace import Trace",
        "model/__init__.py": "from model.trace.trace import Trace",
        "model/nn/config.py": "",
        "model/trace/trace.py": "import torch\nfrom model.nn.config import Stack",
    }
    house = build(tmp_path, sources)
    assert wrong_imports(house) == []
    assert climbing_imports(house) == []
    assert circles(house) == []
    assert lumber_rooms(house) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("model/nn/attention.py", "from model.trace.trace import Trace"),
        ("model/nn/attention.py", "from model.trace import trace"),
        ("model/nn/attention.py", "def late():\n    from model.trace.trace import Trace"),
        ("model/nn/attention.py", "from ..trace.trace import Trace"),
        ("model/attention.py", ""),
    ],
)
def test_a_planted_climb_is_found(tmp_path: Path, path: str, source: str) -> None:
    sources = {"model/trace/__init__.py": "", "model/trace/trace.py": "", path: source}
    assert len(climbing_imports(build(tmp_path, sources))) == 1


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    sources = {
        "model/nn/one.py": "from model.nn import two",
        "model/nn/two.py": "def late():\n    from model.nn.three import thing",
        "model/nn/three.py": "from .one import other",
    }
    assert circles(build(tmp_path, sources)) == [{f"model.nn.{n}" for n in ("one", "two", "three")}]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("model/trace.py", "import streamlit as st"),
        ("model/trace.py", "from plotly import graph_objects"),
        ("model/trace.py", "from viz.theme import PURPLE"),
        ("model/trace.py", "def draw():\n    import plotly.express"),
        ("model/worked/notes.py", "import app"),
        ("model/trace.py", "import importlib\nimportlib.import_module('streamlit')"),
        ("model/trace.py", "__import__('pages')"),
        ("model/__init__.py", "import streamlit"),
        ("viz/shell.py", "from pages import heads"),
        ("viz/shell.py", "import app"),
        ("viz/notation/formulas.py", "import streamlit"),
        ("viz/figures/grid.py", "from streamlit.delta_generator import DeltaGenerator"),
        ("viz/figures/__init__.py", "import streamlit"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, path: str, source: str) -> None:
    assert len(wrong_imports(build(tmp_path, {path: source}))) == 1


@pytest.mark.parametrize(
    "sources",
    [
        {"viz/figures/grid.py": "from viz.shell import theme"},
        {"viz/figures/grid.py": "from .. import shell"},
        {"viz/figures/grid.py": "from ..shell import theme"},
        {"viz/figures/grid.py": "from viz import theme", "viz/theme.py": "from . import shell"},
        {"viz/figures/grid.py": "", "viz/__init__.py": "from .shell import theme"},
    ],
    ids=["directly", "by dots", "by dots and name", "through a neighbour", "through the package"],
)
def test_streamlit_is_found_behind_another_module(tmp_path: Path, sources: dict[str, str]) -> None:
    house = build(tmp_path, {"viz/__init__.py": "", "viz/shell.py": "import streamlit"} | sources)
    found = wrong_imports(house)
    assert any(line.startswith("viz.figures.grid") and "streamlit" in line for line in found)


@pytest.mark.parametrize("path", ["model/utils.py", "viz/common/colours.py", "viz/figures/base.py"])
def test_a_planted_lumber_room_is_found(tmp_path: Path, path: str) -> None:
    assert len(lumber_rooms(build(tmp_path, {path: ""}))) == 1
