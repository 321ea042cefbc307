"""The lines as loops over single numbers."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence

from model.snippets import Line
from model.worked.styles.cells import Cells, Index, NoLoopsError, at, plus, reduces
from model.worked.styles.meaning import Meaning
from model.worked.styles.outline import Kind, Outline, kind_of
from model.worked.styles.rewriting import expression, fresh, keyword, whole, written

_LETTERS = "ijkcmpqrstuvw"
_MOST = 4_000  # turns of the innermost loop: what a reader can wait for
_BESIDE = {1: ("each number",), 2: ("each row", "each column")}
_KINDS: Mapping[Kind, str] = {
    "float": "",
    "whole": ", dtype=torch.long",
    "truth": ", dtype=torch.bool",
}
_NAMES = {
    "sum": "total",
    "mean": "mean",
    "var": "variance",
    "std": "deviation",
    "norm": "length",
    "softmax": "shares",
    "log_softmax": "logarithms",
    "max": "largest",
    "amax": "largest",
    "min": "least",
    "argmax": "best",
    "cat": "joined",
    "stack": "together",
}

Place = Callable[[Index], ast.expr]  # where the number at an index is written


class Loops:
    """Writes assignments as loops. names: of the example, which no new name may be."""

    def __init__(self, meaning: Meaning, names: set[str]) -> None:
        self._meaning = meaning
        self._cells = Cells(meaning, self._named)
        self._names = set(names)
        self._lines: list[Line] = []
        letters = [letter for letter in _LETTERS if letter not in names]
        self._letters = [ast.Name(letter, ast.Load()) for letter in letters]

    def assigned(self, name: str, node: ast.expr) -> tuple[Line, ...]:
        """The lines that give a tensor its name. Raises NoLoopsError where they have no such form."""
        self._lines = []
        single = ast.unparse(node).startswith("torch.tensor(") and not self._cells.shape(node)
        if single or not isinstance(self._meaning.of(node), Outline):
            raise NoLoopsError("a single number")
        self._assign(name, node)
        return tuple(self._lines)

    def _assign(self, name: str, node: ast.expr) -> None:
        shape, target = self._cells.shape(node), ast.Name(name, ast.Load())
        body = self._body(node, lambda index: at(target, index))
        if shape:
            sizes = ", ".join(map(str, shape)) + _KINDS[kind_of(self._meaning.of(node))]
            self._lines.append(Line(f"{name} = torch.zeros({sizes})"))
        elif " += " in "".join(line.code for line in body):
            self._lines.append(Line(f"{name} = 0.0"))
        self._lines += body

    def _named(self, node: ast.expr, wanted: str = "product") -> ast.expr:
        """A part that gets a name, and lines of its own."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            wanted = _NAMES.get(node.func.attr, wanted)
        name = fresh(wanted, self._names)
        self._assign(name, node)
        found = ast.Name(name, ast.Load())
        self._meaning.mean(found, self._meaning.of(node))
        return found

    def _simple(self, node: ast.expr) -> ast.expr:
        """What a loop may read again and again: a name for a part that is a sum itself."""
        return self._named(node) if reduces(node) else node

    def _body(self, node: ast.expr, place: Place) -> list[Line]:
        """The loops that write each number of a tensor to its place."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self._product(node, place)
        if isinstance(node, ast.Call) and reduces(node) and isinstance(node.func, ast.Attribute):
            name, function = node.func.attr, ast.unparse(node.func)
            if function in ("torch.stack", "torch.cat"):
                return self._joined(node, place)
            if name in ("softmax", "log_softmax"):
                return self._softmax(node, node.func.value, place)
            return self._reduced(node, node.func.value, place)
        shape = self._cells.shape(node)
        index = self._index(shape)
        cell = self._cells.cell(node, index)
        return self._nested(shape, [Line(f"{written(place(index))} = {written(cell)}")])

    def _index(self, shape: Sequence[int]) -> Index:
        zero = ast.Constant(0)
        pairs = zip(shape, self._letters, strict=False)
        return tuple(zero if size == 1 else letter for size, letter in pairs)

    def _nested(self, shape: Sequence[int], inside: Sequence[Line], turns: int = 1) -> list[Line]:
        """One loop for each axis. turns: what is done inside, as often."""
        if math.prod(shape) * turns > _MOST:
            raise NoLoopsError("too many numbers")
        words, lines, depth = _BESIDE.get(len(shape), ()), list[Line](), 0
        for number, size in enumerate(shape):
            if size != 1:
                beside = words[number] if words else ""
                head = f"for {self._letters[number].id} in range({size}):"
                lines.append(Line("    " * depth + head, beside))
                depth += 1
        return [*lines, *(Line("    " * depth + line.code, line.beside) for line in inside)]

    def _product(self, node: ast.BinOp, place: Place) -> list[Line]:
        left, right = self._simple(node.left), self._simple(node.right)
        shape, one, other = map(self._cells.shape, (node, left, right))
        index, shared = self._index(shape), self._letters[len(shape)]
        rest = list(index)
        column = (rest.pop(),) if len(other) > 1 else ()
        row = (rest.pop(),) if len(one) > 1 else ()
        first = (
            (*rest[len(rest) - len(one) + 2 :], *row, shared) if len(one) > 2 else (*row, shared)
        )
        second = (*rest[len(rest) - len(other) + 2 :], shared, *column)
        second = second if len(other) > 2 else (shared, *column)
        product = ast.BinOp(
            self._cells.cell(left, first), ast.Mult(), self._cells.cell(right, second)
        )
        return self._summed(shape, place(index), product, one[-1])

    def _summed(
        self, shape: Sequence[int], target: ast.expr, term: ast.expr, count: int
    ) -> list[Line]:
        letter = self._letters[len(shape)].id
        lines = [
            Line(f"for {letter} in range({count}):", "summed over"),
            Line(f"    {written(target)} += {written(term)}"),
        ]
        return self._nested(shape, lines, count)

    def _over(self, node: ast.Call, operand: ast.expr) -> tuple[list[int], bool]:
        """The axes that a function goes over, and whether they stay with length 1."""
        rank = len(self._cells.shape(operand))
        said = node.args[0] if node.args else keyword(node, "dim")
        axes = [*range(rank)]
        if said is not None:
            found = self._meaning.of(said)
            axes = [found % rank] if isinstance(found, int) else []
        if not axes or (len(axes) > 1 and rank > 1):
            raise NoLoopsError(ast.unparse(node))
        return axes, keyword(node, "keepdim") is not None

    def _along(self, node: ast.Call, operand: ast.expr) -> tuple[Index, Index, int]:
        """The index of the result, that of the operand, and the length of the axis that is gone over."""
        shape, (axes, stays) = self._cells.shape(operand), self._over(node, operand)
        index = self._index(self._cells.shape(node))
        rest = list(index)
        if stays:
            del rest[axes[0]]
        rest.insert(axes[0], self._letters[len(index)])
        return index, tuple(rest), shape[axes[0]]

    def _reduced(self, node: ast.Call, operand: ast.expr, place: Place) -> list[Line]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        shape = self._cells.shape(node)
        if name in ("var", "std"):
            lines = self._variance(node, operand, place)
            root = [Line(f"{written(place(self._index(shape)))} **= 0.5")]
            return lines if name == "var" else [*lines, *self._nested(shape, root)]
        if len(self._cells.shape(operand)) > 1 and not node.args and not node.keywords:
            return self._of_all(operand, name, place)
        operand = self._simple(operand)
        index, inner, count = self._along(node, operand)
        cell, target = self._cells.cell(operand, inner), place(index)
        letter = inner[self._over(node, operand)[0][0]]
        if name in ("sum", "mean"):
            term = expression("x / n", x=cell, n=ast.Constant(count)) if name == "mean" else cell
            return self._summed(shape, target, term, count)
        if name == "norm":
            lines = self._summed(shape, target, expression("x**2", x=cell), count)
            return [*lines, *self._nested(shape, [Line(f"{written(target)} **= 0.5")])]
        each = f"for {written(letter)} in range({count})"
        largest = {"max": "max", "amax": "max", "min": "min"}.get(name)
        line = f"{largest}({written(cell)} {each})"
        if name == "argmax":
            line = f"max(range({count}), key=lambda {written(letter)}: {written(cell)})"
        elif largest is None:
            raise NoLoopsError(name)
        return self._nested(shape, [Line(f"{written(target)} = {line}")], count)

    def _of_all(self, operand: ast.expr, name: str, place: Place) -> list[Line]:
        """A sum or a mean over all axes."""
        operand = self._simple(operand)
        shape = self._cells.shape(operand)
        index = self._index(shape)
        term = self._cells.cell(operand, index)
        if name == "mean":
            term = expression("x / n", x=term, n=ast.Constant(math.prod(shape)))
        if name in ("sum", "mean"):
            return self._nested(shape, [Line(f"{written(place(()))} += {written(term)}")])
        if name in ("max", "min"):
            letters = zip(index, shape, strict=True)
            loops = " ".join(f"for {written(one)} in range({size})" for one, size in letters)
            if "for 0 " not in loops:
                return [Line(f"{written(place(()))} = {name}({written(term)} {loops})")]
        raise NoLoopsError(name)

    def _variance(self, node: ast.Call, operand: ast.expr, place: Place) -> list[Line]:
        operand = self._simple(operand)
        mean = ast.Call(ast.Attribute(operand, "mean", ast.Load()), node.args, [])
        mean.keywords = [one for one in node.keywords if one.arg != "correction"]
        self._meaning.mean(mean, self._meaning.of(node))
        named = self._named(mean)
        index, inner, count = self._along(node, operand)
        correction = keyword(node, "correction")
        less = 1 if correction is None else whole(correction)
        if less is None:
            raise NoLoopsError(ast.unparse(node))
        term = expression(
            "(x - mean) ** 2 / n",
            x=self._cells.cell(operand, inner),
            mean=at(named, index),
            n=ast.Constant(count - less),
        )
        return self._summed(self._cells.shape(node), place(index), term, count)

    def _softmax(self, node: ast.Call, operand: ast.expr, place: Place) -> list[Line]:
        """The largest score is taken off first: the result is the same, and no exponential too large."""
        if any(reduces(part) for part in ast.walk(operand) if isinstance(part, ast.expr)):
            operand = self._named(operand, "scores")
        shape, (axes, _) = self._cells.shape(operand), self._over(node, operand)
        index, axis = list(self._index(shape)), axes[0]
        other, count = self._letters[len(shape)], shape[axis]
        beside = _BESIDE.get(len(shape), [""] * len(shape))
        index[axis] = self._letters[axis]
        among = tuple(other if at_ == axis else one for at_, one in enumerate(index))
        each, score = f"for {other.id} in range({count})", self._cells.cell(operand, among)
        parts = {
            "x": self._cells.cell(operand, tuple(index)),
            "largest": ast.Name(fresh("largest", self._names), ast.Load()),
            "total": ast.Name(fresh("total", self._names), ast.Load()),
        }
        result = "math.exp(x - largest) / total"
        if "log_softmax" in ast.unparse(node.func):
            result = "x - largest - math.log(total)"
        exponential = expression("math.exp(x - largest)", **(parts | {"x": score}))
        largest, total = (written(parts[name]) for name in ("largest", "total"))
        made = written(expression(result, **parts))
        lines = [
            Line(f"{largest} = max({written(score)} {each})"),
            Line(f"{total} = sum({written(exponential)} {each})"),
            Line(f"for {self._letters[axis].id} in range({count}):", beside[axis]),
            Line(f"    {written(place(tuple(index)))} = {made}"),
        ]
        outer = tuple(1 if at_ == axis else size for at_, size in enumerate(shape))
        return self._nested(outer, lines, 3 * count)

    def _joined(self, node: ast.Call, place: Place) -> list[Line]:
        """torch.stack and torch.cat of parts that are listed."""
        listed, *axis = node.args
        said = axis[0] if axis else keyword(node, "dim")
        along = 0 if said is None else whole(said)
        if not isinstance(listed, ast.List) or along is None:
            raise NoLoopsError(ast.unparse(node))
        along, start = along % len(self._cells.shape(node)), 0
        stacks, bodies = ast.unparse(node.func) == "torch.stack", []
        for number, part in enumerate(listed.elts):
            place_of = _placed(place, along, number if stacks else start, stacks)
            bodies.append(self._body(part, place_of))
            start += 0 if stacks else self._cells.shape(part)[along]
        if len({tuple(body[:-1]) for body in bodies}) == 1:  # the same loops around each
            return [*bodies[0][:-1], *(body[-1] for body in bodies)]
        return [line for body in bodies for line in body]


def _placed(place: Place, axis: int, start: int, stacks: bool) -> Place:
    """The place of a part in what it is put into."""

    def of_part(index: Index) -> ast.expr:
        if stacks:
            return place((*index[:axis], ast.Constant(start), *index[axis:]))
        return place((*index[:axis], plus(index[axis], start), *index[axis + 1 :]))

    return of_part
