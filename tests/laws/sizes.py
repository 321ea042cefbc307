"""The laws of sizes: no long function, no long file. They are read from the source, nothing runs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

LONGEST_FUNCTION, LONGEST_FILE = 80, 600  # lines
SIZED = ("app.py", "pages", "viz", "model", "deploy", "tests", "bench", "tools")
WRITTEN = {".py", ".js", ".css", ".html"}
# What a function of JavaScript begins with, alone on its line: its end has the same indentation.
_FUNCTION = re.compile(r"^( *)(?!(?:if|for|while|switch|catch)\b)\S.*(?:\)|=>) \{$")


def written_files(root: Path) -> dict[str, list[str]]:
    """The lines of each file that people wrote, by its place in the house."""
    files = [file for part in SIZED for file in [root / part, *(root / part).rglob("*")]]
    return {
        file.relative_to(root).as_posix(): file.read_text(encoding="utf-8").splitlines()
        for file in sorted(files)
        if file.suffix in WRITTEN and file.is_file()
    }


def long_files(root: Path) -> list[str]:
    """Files that are longer than a reader holds in mind: most of them are two."""
    return [
        f"{path} has {len(lines)} lines"
        for path, lines in written_files(root).items()
        if len(lines) > LONGEST_FILE
    ]


def long_functions(root: Path) -> list[str]:
    """Functions that are longer than a screen shows."""
    readers = {".py": python_functions, ".js": javascript_functions}
    return [
        f"{path}: {name} has {length} lines"
        for path, lines in written_files(root).items()
        if (reader := readers.get(Path(path).suffix))
        for name, length in reader(lines)
        if length > LONGEST_FUNCTION
    ]


def python_functions(lines: list[str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def javascript_functions(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Told by their indentation. The scope of a whole script, "(() => {", is no function."""
    for start, line in enumerate(lines):
        if (found := _FUNCTION.match(line)) and line != "(() => {":
            end = found[1] + "}"
            inside = next(
                (n for n, one in enumerate(lines[start:], 1) if one.startswith(end)), len(lines)
            )
            yield line.strip(), inside
