"""The lines of PyTorch that compute the steps of a worked example, in each style, and each step as a script.

The lines are text, in `forms/`: `plain` computes a step; `einsum`, `loops` and `torch` compute it in other
words, where they differ. Beside a line stands the shape of what it assigns, with names of inputs for sizes
that a reader may change. Of loops the file has the line inside, `scores[i, j] += query[i, k] * key[j, k]`:
the loops around it follow from the shapes.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model.snippets import Snippet, SnippetLine, Style
from model.system.words import Words
from model.worked.inputs import Input

say = Words("worked.code")

LONGEST = 40  # lines of a script
SizeNames = tuple[str, ...]  # ("3", "width // 2")
_OPENING = ["import torch", "", "torch.set_default_dtype(torch.float64)"]
_IMPORTS = {"math.": "import math", "F.": "import torch.nn.functional as F"}
_CELL = re.compile(r"(\w+)\[([^\[\]]*)\] (?:\+|\*\*)?= (.+)")
_SOFTMAX = re.compile(r"(.+ = )softmax\((.+), (\w)\)")
_AXES = {1: ("each number",), 2: ("each row", "each column")}
_KINDS = {"int": ", dtype=torch.long", "bool": ", dtype=torch.bool"}  # numbers of another kind
_EINSUM = re.compile(r'einsum\("(.+?)->(.*?)"')
_LETTERS = {
    "q": "query",
    "k": "key",
    "d": "dimension",
    "n": "token",
    "c": say("number_token_vector"),
    "i": "row",
    "j": "column",
    "m": say("row_column_share"),
    "p": say("place_vector"),
}
_SUMMED = say("letter_result_lacks")
_OF_IDENTITY = say("nn_multiheadattention_maps")


@dataclass(frozen=True)
class StepCode:
    """A step in one style. result: the name of its result, which has so many axes."""

    lines: tuple[SnippetLine, ...]
    result: str
    axes: int
    remark: str = ""

    @property
    def text(self) -> str:
        return "\n".join(line.code for line in self.lines)


Forms = Mapping[Style, StepCode]  # of one step; none where nothing is computed


@cache
def written_forms() -> Mapping[str, Mapping[str, Mapping[Style, str]]]:
    """The text of each form, by the example's name, the step's title and the style."""
    found: dict[str, Mapping[str, Mapping[Style, str]]] = {}
    for file in sorted(Path(__file__).with_name("forms").glob("*.toml")):
        found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def forms_of(example: str, axes: Mapping[str, int], inputs: Sequence[Input]) -> tuple[Forms, ...]:
    """The code of each step of an example in every style in which it has a form.

    axes: how many its result has, by the title of the step.
    """
    texts, forms = written_forms().get(example, {}), list[Forms]()
    sizes: dict[str, SizeNames] = {item.name: tuple(map(str, item.value.shape)) for item in inputs}
    for title, count in axes.items():
        forms.append(step := {})
        for style, text in texts.get(title, {}).items():
            lines = tuple(_with_loops(text, sizes) if style == "loops" else _lines(text))
            if style == "plain":
                sizes |= sizes_of(lines)
                result = re.findall(r"^(\w+) = ", text, re.MULTILINE)[-1]
            remark = _letters(text, texts[title]["plain"]) if style == "einsum" else ""
            if "MultiheadAttention(" in text:
                remark = _OF_IDENTITY
            step[style] = StepCode(_imported(lines), result, count, remark)
    return tuple(forms)


def _lines(text: str) -> Iterator[SnippetLine]:
    """Lines of a file: code, and what stands beside it."""
    for line in text.strip().splitlines():
        code, _, beside = line.partition("  # ")
        yield SnippetLine(code, beside)


def sizes_of(lines: Iterable[SnippetLine]) -> dict[str, SizeNames]:
    """The shape that stands beside a line, by each name that the line assigns."""
    found: dict[str, SizeNames] = {}
    for line in lines:
        shape = re.search(r"\((.*)\)$", line.beside.rpartition(" → ")[2])
        if shape or line.beside.endswith("one number"):
            sizes = tuple(re.split(", ?", shape[1].removesuffix(","))) if shape else ()
            found |= dict.fromkeys(_names_on_the_left(line), sizes)
    return found


def _names_on_the_left(line: SnippetLine) -> list[str]:
    """["q", "k"] of `q, k = …` and of `q = k = …`."""
    *left, _ = line.code.split(" = ")
    return [name for names in left for name in names.split(", ")]


def _imported(lines: tuple[SnippetLine, ...]) -> tuple[SnippetLine, ...]:
    """With what the lines import."""
    text = "\n".join(line.code for line in lines)
    return (*(SnippetLine(line) for name, line in _IMPORTS.items() if name in text), *lines)


def _letters(text: str, plain: str) -> str:
    """What the letters of einsums mean that the plain lines do not have."""
    equations = [one for one in _EINSUM.findall(text) if one not in _EINSUM.findall(plain)]
    letters = dict.fromkeys(letter for pair in equations for letter in "".join(pair))
    words = ", ".join(f"{one} {_LETTERS[one]}" for one in letters if one in _LETTERS)
    sums = any(set(factors) - set(result) - set(",.") for factors, result in equations)
    return f"{words}. {_SUMMED if sums else ''}".strip()


def _with_loops(text: str, sizes: Mapping[str, SizeNames]) -> Iterator[SnippetLine]:
    """Each line about a number at its index, in its loops: over the axes of what is assigned, and over those
    that are summed. `softmax(score, j)` goes over the scores along j. Other lines stay."""
    known, made, opened = dict(sizes), set[str](), ""
    for line in _lines(text):
        cell = _CELL.fullmatch(line.code)
        if cell is None:
            opened = ""
            made.update(_names_on_the_left(line))
            known |= sizes_of([line])
            yield line
            continue
        name, index, term = cell.groups()
        axes = index.split(", ")
        ends = _ends(axes, term, known, name)
        if name not in made:
            made.add(name)
            known.setdefault(name, tuple(ends.get(axis, "1") for axis in axes))
            kind = _KINDS.get(term.partition("(")[0], "")
            yield SnippetLine(f"{name} = torch.zeros({', '.join(known[name])}{kind})")
        around = f"{name} {ends}"
        yield from _nested(line.code, axes, ends, opens=around != opened)
        opened = around


def _ends(
    axes: Sequence[str], term: str, known: Mapping[str, SizeNames], name: str
) -> dict[str, str]:
    """How far each letter goes: as the axis on the right that it stands for, else on the left."""
    bound, ends = re.findall(r"(?:for|lambda) (\w)\b", term), dict[str, str]()
    for tensor, index in [*re.findall(r"(\w+)\[([^\[\]]*)\]", term), (name, ", ".join(axes))]:
        for letter, size in zip(index.split(", "), known.get(tensor, ()), strict=False):
            if re.fullmatch("[a-z]", letter) and letter not in bound:
                ends.setdefault(letter, size)
    left = re.findall(r"\b[a-z]\b", " ".join(axes))
    return {letter: ends[letter] for letter in [*left, *ends] if letter in ends}


def _nested(
    line: str, axes: Sequence[str], ends: Mapping[str, str], *, opens: bool
) -> Iterator[SnippetLine]:
    """A line in its loops. opens: whether they are not those of the line before."""
    softmax, indent = _SOFTMAX.fullmatch(line), ""
    words = dict(zip(axes, _AXES.get(len(axes), [""] * len(axes)), strict=True))
    along = softmax[3] if softmax else ""
    for letter in (one for one in ends if one != along):
        inside = [words[axis] for axis in axes if letter in axis.split()] or ["summed over"]
        if opens:
            yield SnippetLine(f"{indent}for {letter} in range({ends[letter]}):", inside[0])
        indent += "    "
    if softmax is None:
        yield SnippetLine(indent + line)
        return
    other = next(letter for letter in "ijkcm" if letter not in ends)
    score, each = re.sub(rf"\b{along}\b", other, softmax[2]), f"for {other} in range({ends[along]})"
    yield SnippetLine(f"{indent}largest = max({score} {each})")
    yield SnippetLine(f"{indent}total = sum(math.exp({score} - largest) {each})")
    yield SnippetLine(f"{indent}for {along} in range({ends[along]}):", words[along])
    yield SnippetLine(f"{indent}    {softmax[1]}math.exp({softmax[2]} - largest) / total")


def snippet(forms: Sequence[Forms], inputs: Sequence[Input], at: int, style: Style) -> Snippet:
    """The lines of a step, with slots for the row and the column of the chosen cell."""
    code = forms[at][style]
    cell = ("", "[@column@]", "[@row@, @column@]")[code.axes]
    given = tuple(given_to(forms, inputs, at, style))
    return Snippet(code.lines, given, code.result + cell, (), code.remark)


def given_to(
    forms: Sequence[Forms], inputs: Sequence[Input], at: int, style: Style
) -> dict[str, str]:
    """What the lines of a step read, each with its shape where that is known."""
    sizes: dict[str, SizeNames | None] = {
        item.name: tuple(map(str, item.value.shape)) for item in inputs
    }
    for step in forms[:at]:
        if step:
            sizes |= dict.fromkeys(assigned_by(step["plain"].text)) | sizes_of(step["plain"].lines)
    read = read_by(forms[at][style].text)
    return {name: _shape(shape) for name, shape in sizes.items() if name in read}


def _shape(sizes: SizeNames | None) -> str:
    if not sizes:
        return "" if sizes is None else "one number"
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


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
    parts, needed, read = [code.text], read_by(code.text), read_by(code.text)
    for step in reversed(forms[:at]):
        text = step.get(before, step["plain"]).text if step else ""
        if assigned_by(text) & needed:
            parts.insert(0, text)
            needed = (needed - assigned_by(text)) | read_by(text)
            read |= read_by(text)
    lines = [line for part in parts for line in part.splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    body = [line for line in lines if not line.startswith("import ")]
    values = [f"{item.name} = {_literal(item)}" for item in inputs if item.name in read]
    return [*imports, *_OPENING, *values, *body, f"print(torch.as_tensor({code.result}).tolist())"]


def _literal(item: Input) -> str:
    """An input in code: whole numbers as integers."""
    if not item.value.ndim:
        return repr(item.argument)
    return f"torch.tensor({(item.value.astype(int) if item.whole else item.value).tolist()})"


def assigned_by(code: str) -> set[str]:
    """The names that lines leave behind."""
    functions = {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    return functions | {node.id for node in _names(code) if isinstance(node.ctx, ast.Store)}


def read_by(code: str) -> set[str]:
    """The names that lines read before they assign them."""
    read, assigned = set[str](), set[str]()
    for statement in ast.parse(code).body:
        inner = ast.unparse(statement)
        read |= {node.id for node in _names(inner) if isinstance(node.ctx, ast.Load)} - assigned
        assigned |= assigned_by(inner)
    return read


def _names(code: str) -> list[ast.Name]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
