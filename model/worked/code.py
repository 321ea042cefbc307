"""The lines of PyTorch that compute the steps of a worked example, and each step as a script."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from model.snippets import Snippet, Style
from model.worked.inputs import Input
from model.worked.styles import LONGEST, StepCode, assigned_by, needed_before, read_by

_OPENING = ["import torch", "", "torch.set_default_dtype(torch.float64)"]
Forms = Mapping[Style, StepCode]  # of one step


@cache
def code_of_steps() -> Mapping[str, Mapping[str, str]]:
    """The lines of each step, by the example's name and the step's title."""
    return {
        example: {title: lines.strip() for title, lines in steps.items() if isinstance(lines, str)}
        for example, steps in _listed().items()
    }


@cache
def own_forms() -> Mapping[str, Mapping[str, str]]:
    """Lines by PyTorch's functions that cannot be told from the step's own, listed in the same way."""
    return {example: steps["torch"] for example, steps in _listed().items() if "torch" in steps}


@cache
def _listed() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("code.toml").read_text(encoding="utf-8"))


def snippet(forms: Sequence[Forms], inputs: Sequence[Input], at: int, style: Style) -> Snippet:
    """The lines of a step, with slots for the row and the column of the chosen cell."""
    code = forms[at][style]
    cell = ("", "[@column@]", "[@row@, @column@]")[len(code.shape)]
    return Snippet(
        code.lines, (*given_to(forms, inputs, at, style),), code.result + cell, (), code.remark
    )


def given_to(
    forms: Sequence[Forms], inputs: Sequence[Input], at: int, style: Style
) -> dict[str, str]:
    """What the lines of a step read, each with its shape where that is known."""
    shapes = {item.name: _shape(item.value.shape) for item in inputs}
    for step in forms[:at]:
        if step:
            made = step["plain"].made.items()
            shapes |= dict.fromkeys(assigned_by(step["plain"].text), "")
            shapes |= {name: _shape(sizes) for name, sizes in made}
    read = read_by(forms[at][style].text)
    return {name: shape for name, shape in shapes.items() if name in read}


def script(forms: Sequence[Forms], inputs: Sequence[Input], at: int, style: Style = "plain") -> str:
    """At most 40 lines that need PyTorch only (and numpy, where numbers are drawn), and print a step's
    result. Raises ValueError for a step without code.

    Loops follow on plain tensors, and so do others where they would be longer than that.
    """
    if not forms[at]:
        raise ValueError("This step computes nothing.")
    made = _script(forms, inputs, at, style, "plain" if style == "loops" else style)
    if len(made) > LONGEST:
        made = _script(forms, inputs, at, style, "plain")
    return "\n".join(made) + "\n"


def _script(
    forms: Sequence[Forms], inputs: Sequence[Input], at: int, style: Style, before: Style
) -> list[str]:
    """before: the style of earlier steps, where they have it."""
    code = forms[at][style]
    earlier = [step.get(before, step["plain"]).text if step else "" for step in forms[:at]]
    parts = [*needed_before(earlier, code.text), code.text]
    lines = [line for part in parts for line in part.splitlines()]
    needed = set[str]().union(*map(read_by, parts))
    imports = sorted({line for line in lines if line.startswith("import ")})
    body = [line for line in lines if not line.startswith("import ")]
    values = [f"{item.name} = {_literal(item)}" for item in inputs if item.name in needed]
    result = f"print(torch.as_tensor({code.result}).tolist())"
    return [*imports, *_OPENING, *values, *body, result]


def _literal(item: Input) -> str:
    """An input in code: whole numbers as integers."""
    if not item.value.ndim:
        return repr(item.argument)
    return f"torch.tensor({(item.value.astype(int) if item.whole else item.value).tolist()})"


def _shape(sizes: tuple[int, ...]) -> str:
    return str(sizes) if sizes else "one number"
