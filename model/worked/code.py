"""The lines of PyTorch that compute the steps of a worked example, and each step as a script."""

import ast
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from model.worked.inputs import Input
from model.worked.sheet import Step

LONGEST = 40  # lines of a script
_OPENING = ["import torch", "", "torch.set_default_dtype(torch.float64)"]


@cache
def code_of_steps() -> Mapping[str, Mapping[str, str]]:
    """The lines of each step, by the example's name and the step's title."""
    text = Path(__file__).with_name("code.toml").read_text(encoding="utf-8")
    return {
        example: {title: lines.strip() for title, lines in steps.items()}
        for example, steps in tomllib.loads(text).items()
    }


def result_of(code: str) -> str:
    """The name that the last line of a step assigns: its result."""
    last = ast.parse(code).body[-1]
    assert isinstance(last, ast.Assign)
    return ast.unparse(last.targets[0])


def given_to(steps: Sequence[Step], inputs: Sequence[Input], position: int) -> dict[str, str]:
    """What the lines of a step read, each with its shape where that is known."""
    shapes = {item.name: _shape(item.value.shape) for item in inputs}
    for step in steps[:position]:
        if step.code:
            shapes |= dict.fromkeys(_assigned(step.code), "")
            shapes[result_of(step.code)] = _shape(step.result.shape)
    read = _read(steps[position].code or "")
    return {name: shape for name, shape in shapes.items() if name in read}


def written(step: Step) -> str:
    """The lines of a step, with the shape of its result, or its number, in the margin."""
    result = _shape(step.result.shape) if step.result.ndim else f"{float(step.result):.6g}"
    return f"{step.code}  # {result}"


def script(steps: Sequence[Step], inputs: Sequence[Input], position: int) -> str:
    """At most 40 lines that need PyTorch only (and numpy, where numbers are drawn), and print a step's
    result. Raises ValueError for a step without code."""
    code = steps[position].code
    if not code:
        raise ValueError(f"“{steps[position].title}” computes nothing.")
    parts, needed = [code], _read(code)
    for step in reversed(steps[:position]):
        assigned = _assigned(step.code or "")
        if step.code and assigned & needed:
            parts.append(step.code)
            needed = (needed - assigned) | _read(step.code)
    lines = [line for part in reversed(parts) for line in part.splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    body = [line for line in lines if not line.startswith("import ")]
    values = [f"{item.name} = {_literal(item)}" for item in inputs if item.name in needed]
    result = f"print(torch.as_tensor({result_of(code)}).tolist())"
    return "\n".join([*imports, *_OPENING, *values, *body, result]) + "\n"


def _literal(item: Input) -> str:
    """An input in code: whole numbers as integers."""
    if not item.value.ndim:
        return repr(item.argument)
    return f"torch.tensor({(item.value.astype(int) if item.whole else item.value).tolist()})"


def _names(code: str) -> list[ast.Name]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]


def _assigned(code: str) -> set[str]:
    """The names that a step's lines leave behind."""
    functions = {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    return functions | {node.id for node in _names(code) if isinstance(node.ctx, ast.Store)}


def _read(code: str) -> set[str]:
    """The names that a step's lines read before they assign them."""
    read: set[str] = set()
    assigned: set[str] = set()
    for statement in ast.parse(code).body:
        inner = ast.unparse(statement)
        loads = {node.id for node in _names(inner) if isinstance(node.ctx, ast.Load)}
        read |= loads - assigned
        assigned |= _assigned(inner)
    return read


def _shape(sizes: tuple[int, ...]) -> str:
    return str(sizes) if sizes else "one number"
