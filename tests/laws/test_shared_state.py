"""What a process keeps between visitors is bounded, and what it keeps is known: every cache and every
value of a module that a function changes.

The checker reads the sources. A new cache with arguments needs a bound, and no function changes a value
of its module. What is left is the engine, the archive, the workshop, the runs and the jobs, which are
objects with bounds and tests of their own.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for room in ("model", "viz", "pages") for path in (ROOT / room).rglob("*.py"))
CHANGES = {
    "append", "add", "update", "setdefault", "extend", "insert", "pop", "popitem", "clear", "remove",
}  # fmt: skip
# Caches without a bound whose arguments are few: names and files of what ships with the app.
FEW_ARGUMENTS = {
    "model/loading/untrained.py:untrained_bytes", "model/system/words.py:file_of_words",
    "model/training/checkpoints.py:shipped_training_run", "viz/explorer/assets.py:addresses",
    "viz/views/glossary/miniatures.py:picture", "viz/views/worked/by_hand.py:worked_example",
    "viz/views/worked/choice.py:names_of",
}  # fmt: skip


def caches(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef, ast.expr]]:
    """Every function with a cache, and that decorator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
                if name.rpartition(".")[2] in {
                    "cache",
                    "lru_cache",
                    "cache_data",
                    "cache_resource",
                }:
                    yield node, decorator


def unbounded(source: str) -> list[str]:
    """Functions whose cache grows with what they are given and has no bound."""
    found = []
    for function, decorator in caches(ast.parse(source)):
        given = function.args
        takes = bool(given.args or given.kwonlyargs or given.vararg or given.kwarg)
        options = decorator.keywords if isinstance(decorator, ast.Call) else []
        bounds = [one for one in options if one.arg in {"maxsize", "max_entries"}]
        bounded = any(
            (isinstance(one.value, ast.Constant) and isinstance(one.value.value, int))
            or isinstance(one.value, ast.Name)
            for one in bounds
        )
        if takes and not bounded:
            found.append(function.name)
    return found


def changed(source: str) -> list[str]:
    """Names of a module's own values that its functions change or give anew."""
    tree = ast.parse(source)
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found, given_anew = [], set()
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.Global):
            given_anew |= set(node.names)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found += [node.value.id] if isinstance(node.value, ast.Name) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = node.func.value
            if node.func.attr in CHANGES and isinstance(holder, ast.Name):
                found.append(holder.id)
    local = {
        name.id
        for function in functions
        for name in ast.walk(function)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    return sorted(given_anew | (set(found) & own) - local)


def test_every_cache_with_arguments_is_bounded() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for path in FILES
        for name in unbounded(path.read_text(encoding="utf-8"))
    }
    assert found == FEW_ARGUMENTS


def test_no_module_keeps_what_a_visitor_brought() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for path in FILES
        for name in changed(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize("source", [
    "SEEN = {}\ndef note(text):\n    SEEN[text] = 1",
    "SEEN: list[str] = []\ndef note(text):\n    SEEN.append(text)",
    "LAST = ''\ndef note(text):\n    global LAST\n    LAST = text",
    "SEEN = {}\ndef note(text):\n    del SEEN[text]",
])  # fmt: skip
def test_a_planted_memory_is_found(source: str) -> None:
    assert len(changed(source)) == 1


@pytest.mark.parametrize("source", [
    "@cache\ndef read(text): ...",
    "@lru_cache(maxsize=None)\ndef read(text): ...",
    "@st.cache_data(ttl=5)\ndef read(*, text): ...",
])  # fmt: skip
def test_a_planted_cache_without_bound_is_found(source: str) -> None:
    assert unbounded(source) == ["read"]
