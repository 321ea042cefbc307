"""Code written anew: an expression in other words, with what stays as it was."""

import ast
import re
from collections.abc import Iterable
from itertools import chain, count

from model.worked.styles.meaning import Meaning

_MILLIONS = re.compile(r"\b1(0{6,})\.0\b")
_POWER = re.compile(r"([\w.]+) \*\* ([\w.]+)")


class Rewriting(ast.NodeTransformer):
    """Copies code. A style overrides what it writes otherwise; `before` takes lines that must come first.

    names: those that the example uses, which no new name may be.
    """

    def __init__(self, meaning: Meaning, names: Iterable[str]) -> None:
        self.meaning = meaning
        self.names = set(names)
        self.before: list[str] = []
        self.remark = ""  # on the lines of the statement that was written last

    def generic_visit(self, node: ast.AST) -> ast.AST:
        def copied(part: object) -> object:
            if isinstance(part, list):
                return [copied(one) for one in part]
            return self.visit(part) if isinstance(part, ast.AST) else part

        return type(node)(**{name: copied(part) for name, part in ast.iter_fields(node)})

    def rank(self, node: ast.AST) -> int | None:
        """The axes of a tensor; None where that is not known."""
        shape = self.meaning.shape(node)
        return None if shape is None else len(shape)


def fresh(wanted: str, names: set[str]) -> str:
    """A name that nothing has yet; it is taken then."""
    numbered = (f"{wanted}_{number}" for number in count(2))
    found = next(name for name in chain([wanted], numbered) if name not in names)
    names.add(found)
    return found


def written(node: ast.AST) -> str:
    """Code as the house writes it."""
    text = ast.unparse(ast.fix_missing_locations(node)).replace("'", '"')
    text = _MILLIONS.sub(lambda found: f"1e{len(found[1])}", text)
    return _POWER.sub(r"\1**\2", text)


def expression(text: str, **parts: ast.expr) -> ast.expr:
    """A line of code as an expression, with parts in place of the names of the template."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    filled: ast.expr = Filled().visit(ast.parse(text, mode="eval").body)
    return filled


def is_call(node: ast.AST, name: str) -> bool:
    """Whether this calls a method or a function of this name: "softmax", "F.gelu"."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return name in (node.func.attr, ast.unparse(node.func))


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def turned(node: ast.expr) -> ast.expr | None:
    """What `.T` or `.transpose(-2, -1)` is called on; None where neither is."""
    match node:
        case ast.Attribute(inner, "T"):
            return inner
        case ast.Call(ast.Attribute(inner, "transpose"), [_, _]) if ast.unparse(node).endswith(
            ".transpose(-2, -1)"
        ):
            return inner
    return None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The argument of this name."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def whole(node: ast.AST | None) -> int | None:
    """A whole number that stands in the code, also a negative one."""
    match node:
        case ast.Constant(int() as number):
            return number
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
            return -number
    return None
