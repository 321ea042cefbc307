"""One number of a tensor as an expression of single numbers: what stands inside the loops."""

import ast
from collections.abc import Callable, Mapping

from model.worked.styles.meaning import Meaning
from model.worked.styles.outline import FUNCTIONS, Outline, kind_of
from model.worked.styles.rewriting import expression, keyword, turned, whole

Index = tuple[ast.expr, ...]
# Functions of one number x; "math." is imported where it is used.
_OF_ONE: Mapping[str, str] = {
    "exp": "math.exp(x)",
    "sqrt": "math.sqrt(x)",
    "sin": "math.sin(x)",
    "cos": "math.cos(x)",
    "log": "math.log(x)",
    "tanh": "math.tanh(x)",
    "square": "x**2",
    "abs": "abs(x)",
    "sigmoid": "1 / (1 + math.exp(-x))",
    "long": "int(x)",
    "bool": "bool(x)",
    "nan_to_num": "0.0 if math.isnan(x) else x",
    "torch.special.ndtr": "(1 + math.erf(x / 2**0.5)) / 2",
    "torch.cos": "math.cos(x)",
    "torch.tanh": "math.tanh(x)",
}
REDUCING = (
    "softmax",
    "log_softmax",
    "sum",
    "mean",
    "var",
    "std",
    "norm",
    "max",
    "min",
    "amax",
    "argmax",
)


class NoLoopsError(ValueError):
    """These lines have no form in loops."""


class Cells:
    """The cells of expressions. named: is asked for the name of a part that needs lines of its own."""

    def __init__(self, meaning: Meaning, named: Callable[[ast.expr], ast.expr]) -> None:
        self._meaning = meaning
        self._named = named

    def shape(self, node: ast.expr) -> tuple[int, ...]:
        shape = self._meaning.shape(node)
        if shape is None:
            raise NoLoopsError(ast.unparse(node))
        return shape

    def cell(self, node: ast.expr, index: Index) -> ast.expr:
        """The number at an index, which has an entry for each axis. Raises NoLoopsError."""
        if not isinstance(self._meaning.of(node), Outline):
            self.shape(node)
            return node  # a single number, as it stands
        if reduces(node):
            node = self._named(node)
        match node:
            case ast.Name():
                return at(node, index)
            case ast.BinOp(left, operation, right):
                return ast.BinOp(self._part(left, index), operation, self._part(right, index))
            case ast.Compare(left, operations, [right]):
                return ast.Compare(self._part(left, index), operations, [self._part(right, index)])
            case ast.UnaryOp(ast.Invert(), operand):
                return ast.UnaryOp(ast.Not(), self.cell(operand, index))
            case ast.UnaryOp(operation, operand):
                return ast.UnaryOp(operation, self.cell(operand, index))
            case ast.Attribute(operand, "T"):
                return self.cell(operand, index[::-1])
            case ast.Subscript(owner, chosen):
                return self.cell(owner, self._picked(owner, chosen, index))
            case ast.Call(ast.Attribute(owner, name)):
                return self._called(node, owner, name, index)
        raise NoLoopsError(ast.unparse(node))

    def _part(self, node: ast.expr, index: Index) -> ast.expr:
        """The cell of a part that may have fewer axes, or axes of length 1."""
        shape = self.shape(node)
        own = index[len(index) - len(shape) :]
        zero = ast.Constant(0)
        return self.cell(
            node, tuple(zero if size == 1 else at for size, at in zip(shape, own, strict=True))
        )

    def _picked(self, owner: ast.expr, chosen: ast.expr, index: Index) -> Index:
        """The index before numbers, slices and new axes were picked."""
        parts = chosen.elts if isinstance(chosen, ast.Tuple) else [chosen]
        rest, found = list(index), list[ast.expr]()
        for part in parts:
            match part:
                case ast.Constant(None):
                    rest.pop(0)
                case ast.Slice(lower, _, None):
                    low = None if lower is None else whole(lower)
                    if lower is not None and (low is None or low < 0):
                        raise NoLoopsError(ast.unparse(chosen))
                    found.append(plus(rest.pop(0), low or 0))
                case _ if isinstance(self._meaning.of(part), int):
                    number = self._meaning.of(part)
                    found.append(ast.Constant(number % self.shape(owner)[len(found)]))
                case _ if self._numbers(part) and len(self.shape(part)) <= 1:
                    of = (rest.pop(0),) if self.shape(part) else ()
                    found.append(self.cell(part, of))
                case _:
                    raise NoLoopsError(ast.unparse(chosen))
        return (*found, *rest)

    def _numbers(self, node: ast.expr) -> bool:
        """Whether these are whole numbers, to pick rows by."""
        kind = self._meaning.of(node)
        return isinstance(kind, Outline) and kind.kind == "whole"

    def _called(self, node: ast.Call, owner: ast.expr, name: str, index: Index) -> ast.expr:
        if (function := ast.unparse(node.func)) in FUNCTIONS:
            if function in _OF_ONE:
                return expression(_OF_ONE[function], x=self.cell(node.args[0], index))
            return self._made(function, node, index)
        if name in _OF_ONE and not node.args:
            return expression(_OF_ONE[name], x=self.cell(owner, index))
        if (inner := turned(node)) is not None:
            return self.cell(inner, (*index[:-2], index[-1], index[-2]))
        match name, node.args:
            case "masked_fill", [mask, fill]:
                parts = {"a": fill, "b": self._part(mask, index), "c": self.cell(owner, index)}
                return expression("a if b else c", **parts)
            case (("tril" | "triu"), [] | [_]):
                return self._triangle(node, owner, name, index)
            case "clamp", []:
                low = keyword(node, "min")
                if low is not None and len(node.keywords) == 1:
                    return expression("max(x, low)", x=self.cell(owner, index), low=low)
            case "flip", [ast.Constant(0)]:
                first = ast.BinOp(ast.Constant(self.shape(owner)[0] - 1), ast.Sub(), index[0])
                return self.cell(owner, (first, *index[1:]))
            case "flatten", [ast.Constant(int() as start)]:
                return self.cell(owner, (*index[:start], *self._apart(owner, start, index[-1])))
            case "expand", _:
                return self._part(owner, index)
            case "to", _:
                return self.cell(owner, index)
        raise NoLoopsError(function)

    def _triangle(self, node: ast.Call, owner: ast.expr, name: str, index: Index) -> ast.expr:
        """What lies on or below the diagonal, or above it."""
        diagonal = (whole(node.args[0]) if node.args else 0) or 0
        row, column = plus(index[-2], diagonal), index[-1]
        sign = "<=" if name == "tril" else ">="
        inside = expression(f"column {sign} row", row=row, column=column)
        if ast.unparse(owner).startswith("torch.ones("):
            truth = kind_of(self._meaning.of(owner)) == "truth"
            return inside if truth else expression("float(a)", a=inside)
        return expression("x if inside else 0.0", x=self.cell(owner, index), inside=inside)

    def _made(self, function: str, node: ast.Call, index: Index) -> ast.expr:
        match function, node.args:
            case "torch.ones", _:
                return ast.Constant(1.0)
            case "torch.zeros", _:
                return ast.Constant(0.0)
            case "torch.eye", [_]:
                return expression("float(i == j)", i=index[0], j=index[1])
            case "torch.arange", [_]:
                return index[0]
            case "torch.full_like", [_, fill]:
                return fill
            case "torch.outer", [left, right]:
                first, second = self.cell(left, index[:1]), self.cell(right, index[1:])
                return ast.BinOp(first, ast.Mult(), second)
            case "torch.diag", [vector]:
                parts = {"x": self.cell(vector, index[:1]), "i": index[0], "j": index[1]}
                return expression("x if i == j else 0.0", **parts)
            case "torch.where", [condition, first, second]:
                parts = {
                    "a": self._part(first, index),
                    "b": self._part(condition, index),
                    "c": self._part(second, index),
                }
                return expression("a if b else c", **parts)
            case "torch.xlogy", [first, second]:
                parts = {"a": self._part(first, index), "b": self._part(second, index)}
                return expression("a * math.log(b) if a else 0.0", **parts)
            case "torch.tensor", [ast.List() as listed] if len(index) == 1:
                return at(listed, index)
            case "torch.tensor", [number] if not index:
                return number
        raise NoLoopsError(function)

    def _apart(self, owner: ast.expr, start: int, index: ast.expr) -> Index:
        """One index over two axes that were flattened, as one of each."""
        joined = self.shape(owner)[start:]
        if len(joined) != 2:
            raise NoLoopsError("more than two axes in one")
        size = ast.Constant(joined[1])
        return ast.BinOp(index, ast.FloorDiv(), size), ast.BinOp(index, ast.Mod(), size)


def at(name: ast.expr, index: Index) -> ast.expr:
    """name[i, j]; a single number as it is."""
    if not index:
        return name
    inside = index[0] if len(index) == 1 else ast.Tuple(list(index), ast.Load())
    return ast.Subscript(name, inside, ast.Load())


def plus(index: ast.expr, more: int) -> ast.expr:
    """i + 2"""
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        return ast.Constant(index.value + more)
    if not more:
        return index
    return ast.BinOp(index, ast.Add(), ast.Constant(more))


def reduces(node: ast.expr) -> bool:
    """Whether a cell of it needs more than one cell of its parts."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr in (*REDUCING, "stack", "cat")
