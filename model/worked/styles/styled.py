"""All steps of an example in every style in which their lines differ."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from model.snippets import Line, Style
from model.worked.inputs import Input
from model.worked.styles.cells import NoLoopsError
from model.worked.styles.definitions import Definitions
from model.worked.styles.einsum import AsEinsum
from model.worked.styles.functions import ByFunctions
from model.worked.styles.loops import Loops
from model.worked.styles.meaning import Meaning
from model.worked.styles.needs import LONGEST, assigned_by, needed_before, read_by
from model.worked.styles.outline import Outline, shape_of
from model.worked.styles.rewriting import Rewriting, names_in, turned, written
from model.worked.styles.tensors import InTensors

_FUNCTIONAL = "import torch.nn.functional as F"
_MATH = "import math"
_ONE_NUMBER = "one number"
_AROUND = 7  # lines of a script for what it imports and prints
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class StepCode:
    """A step in one style. result: the name of its result, which has this shape. made: the shape of whatever
    the lines in tensors give a name, where it is known."""

    lines: tuple[Line, ...]
    result: str
    shape: Sizes
    remark: str = ""
    made: Mapping[str, Sizes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(line.code for line in self.lines)


@dataclass(frozen=True)
class _Statement:
    """One statement, and the lines in which it stands."""

    node: ast.stmt
    lines: tuple[str, ...]

    @property
    def target(self) -> str:
        """The one name that it assigns; "" where it is no such statement."""
        if isinstance(self.node, ast.Assign) and isinstance(self.node.targets[0], ast.Name):
            return self.node.targets[0].id
        return ""


Program = Sequence[Sequence[_Statement]]  # of each step


def styled(
    codes: Sequence[str | None],
    sizes: Sequence[Sizes],
    inputs: Iterable[Input],
    own_forms: Sequence[str | None],
) -> tuple[Mapping[Style, StepCode], ...]:
    """The lines of each step by style: tensors, and those in which the lines differ from them.

    codes: the lines of each step, None where it computes nothing. sizes: the shape of its result. own_forms:
    lines by PyTorch's functions that stand for those that would be made.
    """
    inputs, own = tuple(inputs), [_statements(code or "") for code in codes]
    names = {item.name for item in inputs}.union(
        *(names_in(one.node) for step in own for one in step)
    )
    tensors = [_statements(_in_tensors(step, names)) for step in own]
    (meaning, shapes), (of_own, _) = (_read(code, sizes, inputs) for code in (tensors, own))
    definitions = Definitions(of_own)
    found, texts = [], list[str]()
    for at, made in enumerate(sizes):
        apart = _split(tensors[at])
        later = read_by("\n".join(map(_text, own[at + 1 :])))
        texts.append(_text(tensors[at]))
        room = LONGEST - _AROUND - len(inputs)
        room -= sum(len(one.splitlines()) for one in needed_before(texts[:at], texts[at]))
        plain = _code(_source(tensors[at], meaning), tensors[at], made, meaning)
        others: dict[Style, StepCode] = {
            "einsum": _einsum(apart, made, meaning, names),
            "loops": _loops(apart, made, meaning, names, room),
            "torch": _torch(_split(own[at]), made, definitions, names, later),
        }
        if form := own_forms[at]:
            written_out = [*map(Line, form.strip().splitlines())]
            others["torch"] = StepCode(tuple(written_out), plain.result, plain.shape)
        same = (plain.text, _text(apart))
        differing = {style: code for style, code in others.items() if code.text not in same}
        found.append({"plain": replace(plain, made=shapes[at]), **differing} if own[at] else {})
    return tuple(found)


def _statements(text: str) -> list[_Statement]:
    lines = text.splitlines()
    return [
        _Statement(node, tuple(lines[node.lineno - 1 : node.end_lineno]))
        for node in ast.parse(text).body
    ]


def _text(step: Sequence[_Statement]) -> str:
    return "\n".join(line for statement in step for line in statement.lines)


def _split(step: Sequence[_Statement]) -> list[_Statement]:
    """`a, b = x, y` as two statements."""
    found = list[_Statement]()
    for statement in step:
        match statement.node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                pairs = zip(targets, values, strict=True)
                each = [ast.Assign([target], value, lineno=0) for target, value in pairs]
                found += [_Statement(one, tuple(written(one).splitlines())) for one in each]
            case _:
                found.append(statement)
    return found


def _read(
    program: Program, sizes: Sequence[Sizes], inputs: Iterable[Input]
) -> tuple[Meaning, list[dict[str, Sizes]]]:
    """What everything means, and the shape of each name that a step assigns."""
    meaning, shapes = Meaning(inputs), list[dict[str, Sizes]]()
    for step, made in zip(program, sizes, strict=True):
        for statement in step:
            meaning.read(statement.node)
        if (
            step
            and isinstance(last := step[-1].node, ast.Assign)
            and meaning.of(last.value) is None
        ):
            meaning.settle(step[-1].target, last.value, made)
        assigned = assigned_by(_text(step))
        known = {name: shape_of(meaning.named(name)) for name in sorted(assigned)}
        shapes.append({name: shape for name, shape in known.items() if shape is not None})
    return meaning, shapes


def _rewritten(statement: _Statement, rewriting: Rewriting) -> tuple[str, ...]:
    """The lines of a statement, with those that come before; as they are where nothing changes."""
    rewriting.before, rewriting.remark = [], ""
    new = written(rewriting.visit(statement.node))
    if new == written(statement.node):
        return statement.lines
    return (*rewriting.before, *new.splitlines())


def _in_tensors(step: Sequence[_Statement], names: set[str]) -> str:
    rewriting = InTensors(Meaning(()), names)
    lines = [Line(line) for statement in step for line in _rewritten(statement, rewriting)]
    return "\n".join(line.code for line in _imported(lines))


def _imported(lines: Sequence[Line]) -> list[Line]:
    """With what the lines import, and nothing else of it."""
    rest = [line for line in lines if line.code not in (_FUNCTIONAL, _MATH)]
    text = "\n".join(line.code for line in rest)
    needed = [(_MATH, "math."), (_FUNCTIONAL, "F.")]
    return [*(Line(imports) for imports, name in needed if f"{name}" in text), *rest]


def _source(step: Sequence[_Statement], meaning: Meaning) -> list[Line]:
    return [
        line
        for statement in step
        for line in _noted(statement.lines, _beside(statement.node, meaning))
    ]


def _noted(lines: Sequence[str], beside: str) -> Iterator[Line]:
    """A shape beside the last line of a statement, after what is said there."""
    *first, last = lines
    yield from map(Line, first)
    code, _, said = last.partition("  # ")
    yield Line(code, ", ".join(filter(None, (said, beside))))


def _beside(node: ast.stmt, meaning: Meaning, style: Style = "plain") -> str:
    """The shape of what a statement makes; of a product, of its factors too."""
    if not isinstance(node, ast.Assign):
        return ""
    made = meaning.of(node.value)
    shape = shape_of(made)
    if shape is None:
        return ""
    if not isinstance(made, Outline):
        return f"{made:.6g}"
    after = str(shape) if shape else _ONE_NUMBER
    match node.value:
        case ast.BinOp(left, ast.MatMult(), right) if style != "torch":
            between = " @ " if style == "plain" else ", "
            pair = (
                (left, right)
                if style == "plain"
                else (turned(left) or left, turned(right) or right)
            )
            factors = [meaning.shape(one) for one in pair]
            return f"{between.join(map(str, factors))} → {after}" if all(factors) else after
    return after


def _code(
    lines: Iterable[Line],
    step: Sequence[_Statement],
    sizes: Sizes,
    meaning: Meaning,
    remark: str = "",
) -> StepCode:
    if not step:
        return StepCode((), "", sizes)
    last = step[-1].node
    shape = shape_of(meaning.of(last.value)) if isinstance(last, ast.Assign) else None
    return StepCode(
        tuple(_imported([*lines])), step[-1].target, sizes if shape is None else shape, remark
    )


def _einsum(
    step: Sequence[_Statement], sizes: Sizes, meaning: Meaning, names: set[str]
) -> StepCode:
    rewriting, beside = AsEinsum(meaning, names), partial(_beside, meaning=meaning, style="einsum")
    lines = [
        line
        for statement in step
        for line in _noted(_rewritten(statement, rewriting), beside(statement.node))
    ]
    return _code(lines, step, sizes, meaning, rewriting.explained)


def _loops(
    step: Sequence[_Statement], sizes: Sizes, meaning: Meaning, names: set[str], room: int
) -> StepCode:
    """As many of the last statements in loops as there is room for, in lines; the others as they are."""
    for first in range(len(step)):
        code = _code(_looped(step, first, meaning, names), step, sizes, meaning)
        if len(code.lines) <= room:
            return code
    return _code(_source(step, meaning), step, sizes, meaning)


def _looped(
    step: Sequence[_Statement], first: int, meaning: Meaning, names: set[str]
) -> Iterator[Line]:
    """first: the number of the first statement that is written in loops."""
    loops = Loops(meaning, names)
    for at, statement in enumerate(step):
        own = _noted(statement.lines, _beside(statement.node, meaning))
        try:
            if at < first or not statement.target or not isinstance(statement.node, ast.Assign):
                raise NoLoopsError("as it is")
            made = loops.assigned(statement.target, statement.node.value)
            same = [line.code for line in made] == [written(statement.node)]
            yield from own if same else made
        except NoLoopsError:
            yield from own


def _torch(
    step: Sequence[_Statement],
    sizes: Sizes,
    definitions: Definitions,
    names: set[str],
    later: set[str],
) -> StepCode:
    rewriting, meaning = ByFunctions(definitions, names), definitions.meaning
    blocks = []
    for statement in step:
        block = _rewritten(statement, rewriting)
        blocks.append((statement, block, rewriting.remark))
        definitions.read(statement.node)
    lines, remarks = list[Line](), dict[str, None]()
    for at, (statement, block, remark) in enumerate(blocks):
        rest = "\n".join(line for _, after, _ in blocks[at + 1 :] for line in after)
        read = later | {one.id for one in ast.walk(ast.parse(rest)) if isinstance(one, ast.Name)}
        if statement is step[-1] or not statement.target or statement.target in read:
            lines += _noted(block, _beside(statement.node, meaning, "torch"))
            remarks[remark] = None
    return _code(lines, step, sizes, meaning, " ".join(filter(None, remarks)))
