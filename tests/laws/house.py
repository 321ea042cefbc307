"""The laws of imports: they point one way, app, pages -> viz -> model, and within each of these down its
rooms; no circles, no lumber room.

The checker reads the source of every module, follows the imports from file to file, and runs nothing. It is
a function of a folder, so that each law is also tried on a small planted house (test_planted_houses.py).
"""

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOMS = ("app", "pages", "viz", "model")
LUMBER_ROOMS = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "base"}
PROGRAMS = {"model.worked.failing_programs"}  # of others, to be shown
TYPE_NAME = re.compile(r"_?[A-Z][a-z]\w*$")
# Which modules may never reach which others, directly or through any module they import.
FORBIDDEN = {
    "model": {"streamlit", "plotly", "viz", "pages", "app"},
    "viz": {"pages", "app"},
    "viz.chat": {"streamlit"},
    "viz.figures": {"streamlit"},
    "viz.notebook": {"streamlit"},
    "viz.notation": {"streamlit"},
}
# The rooms of a package from the ground up: each imports itself and those before it.
FLOORS = {
    "model": ("system", "nn", "trace", "snippets", "download", "arithmetic", "run", "worked",
        "analysis", "exchange", "capture", "hub", "loading", "profile", "many", "code", "training",
        "papers", "serving"),
    "viz": ("notation", "telemetry", "figures", "explorer", "notebook", "chat", "state", "elements",
        "saving", "questions", "tour", "shell", "views", "site", "server", "command"),
}  # fmt: skip


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


def chains(graph: Mapping[str, set[str]], start: str) -> dict[str, list[str]]:
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
    """Modules of Python, and modules of scripts, that import each other, directly or through others."""
    files = module_files(root)
    graph = {name: imported_modules(name, file, files) for name, file in files.items()}
    return circles_of(graph) + circles_of(script_imports(root))


def script_imports(root: Path) -> dict[str, set[str]]:
    """What each script that people wrote imports of the others."""
    scripts = [file for file in (root / "viz").rglob("*.js") if "bundled" not in file.parts]
    return {
        str(file.relative_to(root)): {
            os.path.normpath(file.parent.relative_to(root) / asked)
            for asked in re.findall(r'from\s+"(\.[^"]+\.js)"', file.read_text(encoding="utf-8"))
        }
        for file in scripts
    }


def circles_of(graph: Mapping[str, set[str]]) -> list[set[str]]:
    reached = {name: set(chains(graph, name)) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        together = {other for other in reached[name] if name in reached[other]}
        if len(together) > 1 and together not in found:
            found.append(together)
    return found


def repeated_types(root: Path) -> list[str]:
    """Names of types that stand for two things: classes, and names for combined types, of two modules."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for module, file in module_files(root).items():
        if module in PROGRAMS:
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(module)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                for target in node.targets:
                    if isinstance(target, ast.Name) and TYPE_NAME.match(target.id):
                        places[target.id].add(module)
    return [
        f"{name}: {', '.join(sorted(modules))}"
        for name, modules in sorted(places.items())
        if len(modules) > 1
    ]


def lumber_rooms(root: Path) -> list[str]:
    """Modules and folders whose name says nothing of what is inside."""
    return [name for name in module_files(root) if LUMBER_ROOMS & set(name.split("."))]
