"""PyTorch's functions written out in plain tensors."""

import ast
from typing import NamedTuple

from model.worked.styles.rewriting import Rewriting, expression, fresh, keyword, written


class Form(NamedTuple):
    """A function in tensors: its arguments are a, b, c; eps and dim are named."""

    function: str
    template: str
    named: tuple[str, ...] = ()  # arguments that must be given by name
    takes: int = 1  # arguments that are given by place

    @property
    def reads_twice(self) -> bool:
        nodes = ast.walk(ast.parse(self.template))
        return sum(isinstance(node, ast.Name) and node.id == "a" for node in nodes) > 1


_FORMS = (
    Form("F.relu", "a.clamp(min=0)"),
    Form(
        "F.gelu",
        "0.5 * a * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (a + 0.044715 * a**3)))",
        ("approximate",),
    ),
    Form("F.gelu", "a * torch.special.ndtr(a)"),
    Form("F.silu", "a * a.sigmoid()"),
    Form("F.one_hot", "torch.eye(b, dtype=torch.long)[a]", takes=2),
    Form("F.cross_entropy", "-a.log_softmax(-1)[b]", takes=2),
    Form(
        "F.layer_norm",
        "(a - a.mean(-1, keepdim=True)) / (a.var(-1, keepdim=True, correction=0) + eps).sqrt()",
        ("eps",),
        takes=2,
    ),
    Form(
        "F.layer_norm",
        "(a - a.mean(-1, keepdim=True)) / (a.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()",
        takes=2,
    ),
    Form(
        "F.scaled_dot_product_attention",
        "(a @ b.transpose(-2, -1) / b.shape[-1] ** 0.5).softmax(-1) @ c",
        takes=3,
    ),
    Form(
        "F.scaled_dot_product_attention",
        "(a @ b.transpose(-2, -1) / b.shape[-1] ** 0.5).masked_fill("
        "torch.ones(b.shape[-2], b.shape[-2], dtype=torch.bool).triu(1), float('-inf'))"
        ".softmax(-1) @ c",
        ("is_causal",),
        takes=3,
    ),
    Form(
        "torch.cosine_similarity",
        "(a * b).sum(dim) / (a.norm(dim=dim) * b.norm(dim=dim))",
        ("dim",),
        takes=2,
    ),
)


class InTensors(Rewriting):
    """An argument that a form reads twice gets a name first."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        name, given = ast.unparse(node.func), {one.arg for one in node.keywords}
        for form in _FORMS:
            called = (name, given, len(node.args))
            if called != (form.function, set(form.named), form.takes):
                continue
            a, *rest = (self.visit(one) for one in node.args)
            if not isinstance(a, ast.Name) and form.reads_twice and self.outside:
                inner = fresh("inner", self.names)
                self.before.append(f"{inner} = {written(a)}")
                a = ast.Name(inner, ast.Load())
            named = {one: keyword(node, one) for one in form.named}
            found = {one: self.visit(part) for one, part in named.items() if part is not None}
            return expression(form.template, a=a, **dict(zip("bc", rest, strict=False)), **found)
        return self.generic_visit(node)

    outside = True  # of a function or a list, whose parts cannot be named before it

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:  # noqa: N802
        self.outside = False
        copied = self.generic_visit(node)
        self.outside = True
        return copied
