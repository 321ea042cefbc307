"""Products and sums as torch.einsum, with the letters explained."""

import ast

from model.worked.styles.rewriting import Rewriting, expression, is_call, turned, whole

# The letters of the axes of what has a name in attention, and what they mean.
_AXES = {
    "query": "qd",
    "key": "kd",
    "value": "kd",
    "keys": "kd",
    "values": "kd",
    "weights": "qk",
    "x": "nc",
    "embedding": "nc",
    "q_matrix": "cd",
    "k_matrix": "cd",
    "v_matrix": "cd",
}
_WORDS = {
    "q": "query",
    "k": "key",
    "d": "dimension",
    "n": "token",
    "c": "number of a token's vector",
    "i": "row",
    "j": "column",
    "m": "what row and column share",
    "p": "place in the vector",
}
_SUMMED = "A letter that the result lacks is summed over."
_MOST = 2  # axes that letters are given to; before them stands "..."


class AsEinsum(Rewriting):
    """`letters` are those that the lines use."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.letters: dict[str, None] = {}
        self.sums = False

    @property
    def explained(self) -> str:
        """What the letters mean."""
        words = ", ".join(f"{letter} {_WORDS[letter]}" for letter in self.letters)
        return f"{words}. {_SUMMED if self.sums else ''}".strip() if words else ""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802
        made = None
        if isinstance(node.op, ast.MatMult):
            made = self._product(node)
        elif isinstance(node.op, ast.Mult):
            made = self._spread(node)
        return made or self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        made = None
        if is_call(node, "torch.outer"):
            made = self._einsum("i,j->ij", *node.args)
        elif is_call(node, "sum") or is_call(node, "mean"):
            made = self._sum(node)
        return made or self.generic_visit(node)

    def _einsum(self, letters: str, *operands: ast.expr) -> ast.expr:
        self.letters |= dict.fromkeys(letter for letter in letters if letter.isalpha())
        inputs, _, result = letters.partition("->")
        self.sums |= bool(set(inputs) - set(result) - set(",."))
        call = expression(f'torch.einsum("{letters}")')
        if isinstance(call, ast.Call):
            call.args += [self.visit(one) for one in operands]
        return call

    def _product(self, node: ast.BinOp) -> ast.expr | None:
        left, right = node.left, node.right
        ranks = self.rank(left), self.rank(right)
        if None in ranks:
            return None
        if is_turned := turned(left):
            left = is_turned
        first = self._letters_of(left, "im", ranks[0] or 0, bool(is_turned))
        other = turned(right)
        second = self._letters_of(other or right, "mj", ranks[1] or 0, bool(other))
        if not self._fit(first, second, bool(is_turned), bool(other)):
            first = self._general("im", ranks[0] or 0, bool(is_turned))
            second = self._general("mj", ranks[1] or 0, bool(other))
        pair = first[::-1] if is_turned else first, second[::-1] if other else second
        result = pair[0][:-1] + (pair[1][1:] if len(pair[1]) > 1 else "")
        more = "..." if max(ranks[0] or 0, ranks[1] or 0) > _MOST else ""
        inputs = ",".join(more + one if len(one) > 1 else one for one in (first, second))
        return self._einsum(f"{inputs}->{more}{result}", left, other or right)

    def _letters_of(self, node: ast.expr, general: str, rank: int, is_turned: bool) -> str:
        """Of the axes of a named tensor, or the general ones."""
        if isinstance(node, ast.Name) and rank == _MOST and node.id in _AXES:
            return _AXES[node.id]
        return self._general(general, rank, is_turned)

    @staticmethod
    def _general(letters: str, rank: int, is_turned: bool) -> str:
        """ "im" of the left matrix, "mj" of the right one; "m" of a vector."""
        if rank == 1:
            return "m"
        return letters[::-1] if is_turned else letters

    @staticmethod
    def _fit(first: str, second: str, left_turned: bool, right_turned: bool) -> bool:
        """Whether the two share the letter that is summed over, and no other."""
        left = first[::-1] if left_turned else first
        right = second[::-1] if right_turned else second
        return left[-1] == right[0] and not set(left[:-1]) & set(right)

    def _spread(self, node: ast.BinOp) -> ast.expr | None:
        """A vector along the rows, times a vector or a matrix."""
        match node.left:
            case ast.Subscript(inner, ast.Tuple([ast.Slice(None, None), ast.Constant(None)])):
                if self.rank(inner) == 1 and self.rank(node.right) in (1, 2):
                    second = "j" if self.rank(node.right) == 1 else "ij"
                    return self._einsum(f"i,{second}->ij", inner, node.right)
        return None

    def _sum(self, node: ast.Call) -> ast.expr | None:
        """A sum or a mean over one axis or all."""
        if node.keywords or len(node.args) > 1 or not isinstance(node.func, ast.Attribute):
            return None
        operand = node.func.value
        shape = self.meaning.shape(operand)
        if shape is None or not 1 <= len(shape) <= _MOST:
            return None
        letters = "p" if len(shape) == 1 else "ij"
        axis = whole(node.args[0]) if node.args else None
        if node.args and axis is None:
            return None
        left = "" if axis is None else letters.replace(letters[axis], "")
        made = self._einsum(f"{letters}->{left}", operand)
        if node.func.attr == "sum":
            return made
        count = shape[axis] if axis is not None else shape[0] * (shape[1] if shape[1:] else 1)
        return ast.BinOp(made, ast.Div(), ast.Constant(count))
