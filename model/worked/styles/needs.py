"""What lines read and assign, and which earlier lines they need."""

import ast
from collections.abc import Sequence

LONGEST = 40  # lines of a script


def assigned_by(code: str) -> set[str]:
    """The names that lines leave behind."""
    functions = {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    return functions | {node.id for node in _names(code) if isinstance(node.ctx, ast.Store)}


def read_by(code: str) -> set[str]:
    """The names that lines read before they assign them."""
    read: set[str] = set()
    assigned: set[str] = set()
    for statement in ast.parse(code).body:
        inner = ast.unparse(statement)
        loads = {node.id for node in _names(inner) if isinstance(node.ctx, ast.Load)}
        read |= loads - assigned
        assigned |= assigned_by(inner)
    return read


def needed_before(earlier: Sequence[str], code: str) -> list[str]:
    """Those of the earlier steps whose results the lines need, in their order."""
    parts, needed = list[str](), read_by(code)
    for text in reversed(earlier):
        assigned = assigned_by(text)
        if assigned & needed:
            parts.append(text)
            needed = (needed - assigned) | read_by(text)
    return parts[::-1]


def _names(code: str) -> list[ast.Name]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
