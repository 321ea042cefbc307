"""The sentences with which the public functions refuse: read from the source of the modules that they run."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What a script or a command can reach; pages have their own words around these.
REACHED = (
    "model/trace", "model/run", "model/capture", "model/loading", "model/download",
    "model/analysis/attribution", "model/analysis/findings.py", "model/analysis/differences.py",
    "model/analysis/stage_comparison.py", "model/analysis/stream/stream.py", "model/many",
    "model/exchange", "model/profile", "model/training/training_file.py",
    "model/training/training_record.py", "model/nn/attention.py", "model/nn/intervention.py",
    "model/nn/patches.py", "model/hub/id_tokenizer.py", "model/nn/places.py",
    "model/system/border.py", "model/system/cluster.py", "model/system/extras.py",
    "model/system/memory.py", "viz/figures/of_a_trace.py", "viz/figures/heatmap.py", "viz/notebook",
    "viz/saving/certificate.py", "viz/command",
)  # fmt: skip
BLANK = "…"


def sentences() -> set[tuple[str, str]]:
    """Each sentence with its file; what is filled in is a blank. Parts of sentences, which another one quotes
    as its reason, have no full stop and are left out."""
    return {
        (sentence, path.relative_to(ROOT).as_posix())
        for place in REACHED
        for path in _files(ROOT / place)
        for sentence in raised(ast.parse(path.read_text(encoding="utf-8")))
        if sentence.endswith(".") or (sentence.endswith(BLANK) and not sentence[0].islower())
    }


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []


def raised(tree: ast.AST) -> Iterator[str]:
    """What is raised as an error with a text, and what an error's own class makes of what it is given."""
    for node in ast.walk(tree):
        given = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(given, ast.Call) or not given.args:
            continue
        called = ast.unparse(given.func)
        if (
            isinstance(node, ast.Raise) and called.endswith("Error")
        ) or called == "super().__init__":
            text = written(given.args[0])
            if " " in text:
                yield text


def written(node: ast.expr) -> str:
    """The text of an expression, with a blank for each value."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(values):
            return "".join(written(value) for value in values)
        case ast.BinOp(left, ast.Add(), right):
            return written(left) + written(right)
    return BLANK
