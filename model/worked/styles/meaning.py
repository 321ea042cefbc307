"""What each part of a line is: a tensor of some shape, or a number. Nothing is computed."""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from model.worked.inputs import Input
from model.worked.styles.outline import FUNCTIONS, Outline, kind_of, shape_of

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
_NOT_KNOWN = (ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError)


class Meaning:
    """The meaning of every expression that was read: an outline of a tensor, a single number, or what else
    is made of them."""

    def __init__(self, inputs: Iterable[Input]) -> None:
        self._of: dict[ast.AST, Any] = {}
        self._names: dict[str, Any] = {}
        for item in inputs:
            outline = Outline(item.value.shape, "whole" if item.whole else "float")
            self._names[item.name] = outline if item.value.ndim else item.argument

    def of(self, node: ast.AST) -> Any:
        """None where it is not known."""
        return self._of.get(node)

    def shape(self, node: ast.AST) -> tuple[int, ...] | None:
        """Of a tensor; () of a single number."""
        return shape_of(self.of(node))

    def mean(self, node: ast.AST, meaning: Any) -> None:
        """Says what an expression means that is written anew."""
        self._of[node] = meaning

    def read(self, statement: ast.stmt) -> None:
        """Goes on by one statement. What cannot be known is left out, and so is what is made of it."""
        self._read(statement, self._names)

    def named(self, name: str) -> Any:
        """What a name means after what was read so far; None where it is not known."""
        return self._names.get(name)

    def settle(self, name: str, node: ast.expr, sizes: tuple[int, ...]) -> None:
        """The result of a step, where its lines do not tell."""
        self._names[name] = self._of[node] = Outline(sizes)

    def _read(self, statement: ast.stmt, names: dict[str, Any]) -> Any:
        match statement:
            case ast.Assign([target], value):
                found = self._try(value, names)
                self._assign(target, found, names)
            case ast.FunctionDef(name):
                names[name] = self._function(statement, names)
            case ast.Return(ast.expr() as value):
                return self._try(value, names)
        return None

    def _function(self, made: ast.FunctionDef, names: dict[str, Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            inside = names | {
                one.arg: value for one, value in zip(made.args.args, given, strict=False)
            }
            for statement in made.body:
                result = self._read(statement, inside)
            return result

        return call

    def _assign(self, target: ast.expr, found: Any, names: dict[str, Any]) -> None:
        match target:
            case ast.Name(name):
                names[name] = found
            case ast.Tuple(parts):
                each = found if isinstance(found, tuple) else [None] * len(parts)
                for part, one in zip(parts, each, strict=True):
                    self._assign(part, one, names)

    def _try(self, node: ast.expr, names: dict[str, Any]) -> Any:
        try:
            return self._value(node, names)
        except _NOT_KNOWN:
            return None

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        """Raises an error where it is not known."""
        found = self._made(node, names)
        if found is None and not isinstance(node, ast.Constant):
            raise KeyError(ast.unparse(node))
        self._of[node] = found
        return found

    def _made(self, node: ast.expr, names: dict[str, Any]) -> Any:
        def value(one: ast.expr) -> Any:
            return self._value(one, names)

        match node:
            case ast.Name(name):
                return names[name] if name in names else FUNCTIONS[name]
            case ast.Constant(constant):
                return constant
            case ast.BinOp(left, operation, right):
                return _combined(operation, value(left), value(right))
            case ast.Compare(left, [_], [right]):
                one, other = value(left), value(right)
                return Outline(shape_of(one) or ()).with_(other, "truth")
            case ast.UnaryOp(ast.Invert(), operand):
                return value(operand)
            case ast.UnaryOp(ast.USub(), operand):
                found = value(operand)
                return found if isinstance(found, Outline) else -found
            case ast.Attribute(owner, name):
                return self._attribute(node, owner, name, names)
            case ast.Subscript(owner, index):
                return value(owner)[value(index)]
            case ast.Slice(lower, upper, None):
                return slice(*(None if end is None else value(end) for end in (lower, upper)))
            case ast.Tuple(parts) | ast.List(parts):
                return tuple(self._parts(parts, names))
            case ast.Call(function, arguments, named):
                with_names = {one.arg: value(one.value) for one in named if one.arg}
                return value(function)(*self._parts(arguments, names), **with_names)
            case ast.ListComp(part, [ast.comprehension(target, source, [])]):
                return self._listed(part, target, value(source), names)
        raise KeyError(ast.unparse(node))

    def _attribute(self, node: ast.expr, owner: ast.expr, name: str, names: dict[str, Any]) -> Any:
        if (function := ast.unparse(node)) in FUNCTIONS:
            return FUNCTIONS[function]
        found = self._value(owner, names)
        if not isinstance(found, Outline):
            raise KeyError(name)
        return getattr(found, name) if name in ("T", "shape") else found.method(name)

    def _parts(self, parts: Iterable[ast.expr], names: dict[str, Any]) -> Iterable[Any]:
        for part in parts:
            if isinstance(part, ast.Starred):
                yield from self._value(part.value, names)
            else:
                yield self._value(part, names)

    def _listed(
        self, part: ast.expr, target: ast.expr, source: Iterable[Any], names: dict[str, Any]
    ) -> tuple[Any, ...]:
        made = []
        for one in source:
            inside = dict(names)
            self._assign(target, one, inside)
            made.append(self._value(part, inside))
        return tuple(made)


def _combined(operation: ast.operator, one: Any, other: Any) -> Any:
    """Of two numbers another number; else an outline."""
    if not isinstance(one, Outline) and not isinstance(other, Outline):
        return _OPERATORS[type(operation)](one, other)
    if isinstance(operation, ast.MatMult):
        return one.product(other)
    left = one if isinstance(one, Outline) else Outline((), kind_of(one))
    return left.with_(other, "float" if isinstance(operation, (ast.Div, ast.Pow)) else None)
