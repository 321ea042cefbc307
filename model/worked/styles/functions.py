"""The lines by PyTorch's own functions and modules."""

import ast

from model.worked.styles.definitions import Definitions, Scores, root_of_width, scale_of
from model.worked.styles.outline import Outline
from model.worked.styles.rewriting import Rewriting, expression, fresh, is_call, written

_MAPS = ("matrix", "gate", "up", "first", "second")  # how matrices of weights are called
_OF_IDENTITY = (
    "nn.MultiheadAttention maps queries, keys and values itself; its maps are identities here, and "
    "the values play no part."
)


class ByFunctions(Rewriting):
    """Attention is found in the lines of earlier steps, by their definitions."""

    def __init__(self, definitions: Definitions, names: set[str]) -> None:
        super().__init__(definitions.meaning, names)
        self._definitions = definitions
        self.functional = False  # whether a line calls F

    def f(self, template: str, **parts: ast.expr) -> ast.expr:
        self.functional = True
        return expression(template, **parts)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802
        made = None
        if isinstance(node.op, ast.MatMult):
            made = self._kernel(node) or self._linear(node, None) or self._product(node)
        elif isinstance(node.op, ast.Add) and _is_product(node.left):
            made = self._linear(node.left, node.right)
        elif isinstance(node.op, ast.Div):
            made = self._unit(node)
        return made or self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        if is_call(node, "softmax") and isinstance(node.func, ast.Attribute):
            return self._module(node) or self._softmax(node, node.func.value)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:  # noqa: N802
        """Rows of a table that numbers of tokens choose."""
        rows = self.meaning.of(node.slice)
        whole = isinstance(rows, Outline) and (rows.kind, len(rows.shape)) == ("whole", 1)
        if whole and self.rank(node.value) == 2:
            parts = {"a": self.visit(node.slice), "b": self.visit(node.value)}
            return self.f("F.embedding(a, b)", **parts)
        return self.generic_visit(node)

    def _softmax(self, node: ast.Call, operand: ast.expr) -> ast.expr:
        return self.f("F.softmax(a, dim=b)", a=self.visit(operand), b=node.args[0])

    def _module(self, node: ast.Call) -> ast.expr | None:
        """nn.MultiheadAttention with identities for its maps, where it can do the same."""
        scores = self._definitions.entering(node)
        if scores is None or not root_of_width(scores, self.meaning):
            return None
        query, key = self.meaning.shape(scores.query), self.meaning.shape(scores.key)
        if query is None or key is None or len(query) != 2 or query[-1] != key[-1]:
            return None
        module, width = fresh("module", self.names), key[-1]
        self.before += [
            f"{module} = torch.nn.MultiheadAttention({width}, 1, bias=False)",
            f"{module}.requires_grad_(False)",
            f"{module}.in_proj_weight.data = torch.eye({width}).repeat(3, 1)",
        ]
        mask = f", attn_mask={written(scores.hidden)}" if scores.hidden is not None else ""
        self.remark = _OF_IDENTITY
        return expression(
            f"{module}({written(scores.query)}, {written(scores.key)}, {written(scores.key)}{mask})[1]"
        )

    def _kernel(self, node: ast.BinOp) -> ast.expr | None:
        """F.scaled_dot_product_attention, where the left factor is a softmax of scores."""
        scores = self._definitions.scores(node.left)
        if scores is None or _shapes_differ(self, scores, node.right):
            return None
        call = self.f(
            "F.scaled_dot_product_attention(a, b, c)", a=scores.query, b=scores.key, c=node.right
        )
        if not isinstance(call, ast.Call):
            return None
        if scores.looks_ahead:
            call.keywords.append(ast.keyword("is_causal", ast.Constant(True)))
        elif scores.hidden is not None:
            seen = ast.UnaryOp(ast.Invert(), scores.hidden)
            call.keywords.append(ast.keyword("attn_mask", seen))
        if (scale := scale_of(scores, self.meaning)) is not None:
            call.keywords.append(ast.keyword("scale", scale))
        return call

    def _linear(self, product: ast.expr, bias: ast.expr | None) -> ast.expr | None:
        """A product with a matrix of weights."""
        if not isinstance(product, ast.BinOp) or self.rank(product.right) != 2:
            return None
        matrix = product.right
        name = matrix.value if isinstance(matrix, ast.Subscript) else matrix
        if not (isinstance(name, ast.Name) and name.id.endswith(_MAPS)):
            return None
        if bias is None:
            return self.f("F.linear(a, b.T)", a=self.visit(product.left), b=self.visit(matrix))
        if self.rank(bias) != 1:
            return None
        parts = {"a": self.visit(product.left), "b": self.visit(matrix), "c": self.visit(bias)}
        return self.f("F.linear(a, b.T, c)", **parts)

    def _product(self, node: ast.BinOp) -> ast.expr | None:
        left, right = self.rank(node.left), self.rank(node.right)
        if left is None or right is None:
            return None
        named = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm", (3, 3): "bmm"}
        parts = {"a": self.visit(node.left), "b": self.visit(node.right)}
        return expression(f"torch.{named.get((left, right), 'matmul')}(a, b)", **parts)

    def _unit(self, node: ast.BinOp) -> ast.expr | None:
        """A vector divided by its own length."""
        if ast.unparse(node.right) != f"{ast.unparse(node.left)}.norm()":
            return None
        return self.f("F.normalize(a, dim=0)", a=self.visit(node.left))


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


def _shapes_differ(code: Rewriting, scores: Scores, value: ast.expr) -> bool:
    """Whether queries, keys and values do not have the same number of axes."""
    ranks = {code.rank(scores.query), code.rank(scores.key), code.rank(value)}
    return len(ranks) > 1 or not ranks <= {2, 3, 4}
