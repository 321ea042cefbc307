"""What a name was made of, to find attention in the lines of several steps."""

import ast
import math
from dataclasses import dataclass, field

from model.worked.styles.meaning import Meaning
from model.worked.styles.rewriting import expression, is_call, names_in, turned


@dataclass(frozen=True)
class _Made:
    """An expression, and what its names meant then."""

    node: ast.expr
    then: dict[str, "_Made"]


@dataclass(frozen=True)
class Scores:
    """Scores as they enter a softmax. scale: what they were divided by; None: by nothing.

    hidden: where True means masked with minus infinity.
    """

    query: ast.expr
    key: ast.expr
    scale: ast.expr | None
    hidden: ast.expr | None
    looks_ahead: bool  # whether `hidden` is what lies ahead


@dataclass
class Definitions:
    """What each name is, line by line."""

    meaning: Meaning
    _now: dict[str, _Made] = field(default_factory=dict)

    def read(self, statement: ast.stmt) -> None:
        then = dict(self._now)
        for name in {
            one.id
            for one in ast.walk(statement)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }:
            self._now.pop(name, None)
            value = statement.value if isinstance(statement, ast.Assign) else ast.Constant(None)
            whole = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
            self._now[name] = _Made(value if whole else ast.Constant(None), then)

    def scores(self, weights: ast.expr) -> Scores | None:
        """The scores whose softmax over the last axis these weights are; None if they are none."""
        made = self._followed(weights, self._now)
        if not is_call(made.node, "softmax") or not ast.unparse(made.node).endswith(".softmax(-1)"):
            return None
        return self._before(_owner(made.node), made.then)

    def entering(self, softmax: ast.Call) -> Scores | None:
        """The scores that enter this softmax."""
        return self._before(_owner(softmax), self._now)

    def _before(self, node: ast.expr, then: dict[str, _Made]) -> Scores | None:
        made, hidden, scale = self._followed(node, then), None, None
        ahead = False
        if is_call(made.node, "masked_fill") and isinstance(made.node, ast.Call):
            hidden, fill = made.node.args
            if not self._infinite(fill) or not self._still(hidden, made.then):
                return None
            ahead = self._is_ahead(hidden, made.then)
            made = self._followed(_owner(made.node), made.then)
        if isinstance(made.node, ast.BinOp) and isinstance(made.node.op, ast.Div):
            scale = made.node.right
            if not self._still(scale, made.then):
                return None
            made = self._followed(made.node.left, made.then)
        if not (isinstance(made.node, ast.BinOp) and isinstance(made.node.op, ast.MatMult)):
            return None
        query, key = made.node.left, turned(made.node.right)
        if key is None or not (self._still(query, made.then) and self._still(key, made.then)):
            return None
        return Scores(query, key, scale, hidden, ahead)

    def _followed(self, node: ast.expr, then: dict[str, _Made]) -> _Made:
        """What a name was made of; an expression as it is."""
        if isinstance(node, ast.Name) and node.id in then:
            made = then[node.id]
            if not isinstance(made.node, ast.Constant):
                return made
        return _Made(node, then)

    def _still(self, node: ast.expr, then: dict[str, _Made]) -> bool:
        """Whether all names mean now what they meant then."""
        return all(self._now.get(name) is then.get(name) for name in names_in(node))

    def _infinite(self, fill: ast.expr) -> bool:
        found = self.meaning.of(fill)
        return isinstance(found, float) and math.isinf(found)

    def _is_ahead(self, hidden: ast.expr, then: dict[str, _Made]) -> bool:
        text = ast.unparse(self._followed(hidden, then).node)
        return text.startswith("torch.ones(") and ".triu(1)" in text


def root_of_width(scores: Scores, meaning: Meaning) -> bool:
    """Whether the scores were divided by the root of the keys' width."""
    shape, divisor = meaning.shape(scores.key), None
    if scores.scale is not None:
        divisor = meaning.of(scores.scale)
    if not shape or not isinstance(divisor, (int, float)):
        return False
    return math.isclose(divisor, shape[-1] ** 0.5)


def scale_of(scores: Scores, meaning: Meaning) -> ast.expr | None:
    """What the kernel is told to multiply the scores by; None where it is its own factor."""
    if root_of_width(scores, meaning):
        return None
    if scores.scale is None:
        return ast.Constant(1.0)
    return expression("1 / (a)", a=scores.scale)


def _owner(call: ast.expr) -> ast.expr:
    """What a method is called on."""
    function = call.func if isinstance(call, ast.Call) else call
    return function.value if isinstance(function, ast.Attribute) else call
