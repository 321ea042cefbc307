"""`python -m tools.reference` writes docs/reference.md: every public name, its signature, its docstring and
an example, which the tests run."""

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from deploy.attention_lens import NAMES
from deploy.rewriting import PACKAGE, shown
from model.system.files import write_whole

BOX = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"
TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
WIDTH = 90  # letters of a signature on one line
LETTERS = "A B C A B C D E F D E F\n" * 4
HEAD = f"""# Reference

<!-- made by `python -m tools.reference` from the docstrings -->
Every public name of `{PACKAGE}`, with its shapes, units and errors. The tests run the examples, those of
xarray and Lightning where these are installed. In all of them `model` is `load_model("house-gpt")`, `trace`
is its pass over this text, and `np` is numpy:

> {TEXT}

`letters.txt`, which examples of profiles read, has four times the line `A B C A B C D E F D E F`. In a clone
of this repository write `from model import …` where `from {PACKAGE} import …` stands here.
[Versions](versions.md) says how long a name stays, [Errors](errors.md) what each message means.
"""
# The modules with public names, in the order of the reference; (): all in their `__all__`. Those of the
# package's own face stand first, and once.
MODULES: dict[str, tuple[str, ...]] = {
    "model.trace.records": ("NormRecord", "FeedForwardRecord"),
    "model.trace.trace": ("Logits",),
    "model.loading.record": ("record_lines",),
    "model.loading.in_memory": ("opened",),
    "model.capture": (),
    "model.analysis": (),
    "model.analysis.attribution.score_parts": ("ScoreParts", "EdgeValues"),
    "model.analysis.differences": ("FirstDifference",),
    "model.analysis.findings": ("Finding",),
    "model.analysis.stream.stream": ("LargeNumber",),
    "model.many": (),
    "model.exchange": (),
    "model.trace.partial": ("NotRecordedError",),
    "model.training.training_file": ("RecordedTraining", "RecordedProbe"),
    "model.training.training_record": ("TrainingRecordWarning",),
    "model.profile": (),
    "model.papers": (),
    "model.papers.claims": ("PaperResult",),
    "model.code": ("listing", "script"),
    "model.worked": ("examples",),
    "viz.figures": (),
}


@dataclass(frozen=True)
class PublicName:
    """A name that scripts import, and what it stands for."""

    module: str  # of the package, from which it is imported
    name: str
    value: object
    home: str = ""  # the module of this repository that has it

    @cached_property
    def examples(self) -> list[str]:
        """The code of its docstring, and of the docstrings of its members: prompts, or boxes."""
        docs = [inspect.getdoc(self.value), *(inspect.getdoc(one) for one in self.members.values())]
        prompts = [doctest.DocTestParser().get_examples(doc or "") for doc in docs]
        boxes = [BOX.findall(doc or "") for doc in docs]
        return [one.source for each in prompts for one in each] + [
            one for each in boxes for one in each
        ]

    @property
    def members(self) -> dict[str, object]:
        """The public methods and properties of a class."""
        if not inspect.isclass(self.value):
            return {}
        fields = inspect.get_annotations(self.value)
        return {
            name: member
            for name, member in vars(self.value).items()
            if not name.startswith("_") and name not in fields and hasattr(member, "__get__")
        }


def public_names() -> Iterator[PublicName]:
    """Every name of the reference, once. Where a package is not there yet, its names are left out."""
    known: set[int] = set()
    face = [(PACKAGE, name, home[1:]) for name, home in NAMES.items()]
    for module, chosen in MODULES.items():
        if find_spec(module) is not None:
            names = chosen or import_module(module).__all__
            face += [(f"{PACKAGE}.{module}", name, module) for name in names]
    for module, name, home in face:
        value = _of(home, name)
        if id(value) not in known and not _is_plain(value):
            known.add(id(value))
            yield PublicName(module, name, value, home)


def _of(home: str, name: str) -> object:
    """What a name stands for in its home: a module, or what one holds."""
    package = import_module(home)
    return getattr(package, name) if hasattr(package, name) else import_module(f"{home}.{name}")


def _is_plain(value: object) -> bool:
    """Whether it is a constant or the name of a type, which has no docstring of its own."""
    documented = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
    return not documented and type(value).__module__ in (
        "builtins",
        "collections.abc",
        "types",
        "typing",
    )


def reference() -> str:
    """The text of docs/reference.md."""
    parts, module = [HEAD.rstrip()], ""
    for one in public_names():
        if one.module != module:
            module = one.module
            parts.append(f"## {module}")
        parts += _entry(one)
    return "\n\n".join(parts) + "\n"


def _entry(one: PublicName) -> Iterator[str]:
    """The paragraphs of one name."""
    yield f"### {one.name}"
    if inspect.isfunction(one.value):
        yield f"```python\n{one.name}{_signature(one.value)}\n```"
    yield _prose(one.value)
    if inspect.isclass(one.value) and (fields := [*_fields(one.value)]):
        yield "\n".join(["| field | type | |", "|---|---|---|", *fields])
    if one.members:
        yield "\n".join(_member(name, member) for name, member in one.members.items())


def _member(name: str, member: object) -> str:
    """A method or a property, as an item of a list."""
    called = getattr(member, "__func__", member)  # of a class method
    is_method = inspect.isroutine(called) and not isinstance(called, cached_property)
    parameters = _signature(called, width=None) if is_method else ""
    item = f"- `.{name}{parameters}`: {_prose(member)}"
    return textwrap.indent(item, "  ")[2:]


def _signature(function: object, width: int | None = WIDTH) -> str:
    """As it is written, without `self`. width: letters from which on it has a line for each parameter."""
    node = _parsed(inspect.unwrap(function))  # type: ignore[arg-type]
    if not isinstance(node, ast.FunctionDef):
        return "(…)"
    returned = _unquoted(node.returns)
    ending = "" if returned is None else f" -> {ast.unparse(returned)}"
    written = [*_parameters(node.args)]
    line = f"({', '.join(written)}){ending}"
    if width is None or len(line) <= width:
        return line
    return "(\n" + "".join(f"    {one},\n" for one in written) + f"){ending}"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    """Each with its type and its default, without `self`."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults]
    for one, default in zip(plain, defaults, strict=True):
        if one.arg not in ("self", "cls"):
            yield _parameter(one, default)
    if arguments.vararg or arguments.kwonlyargs:
        yield "*" + (_parameter(arguments.vararg, None) if arguments.vararg else "")
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(one, default)
    if arguments.kwarg:
        yield "**" + _parameter(arguments.kwarg, None)


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = _unquoted(one.annotation)
    typed = f"{one.arg}: {ast.unparse(kind)}" if kind else one.arg
    return typed if default is None else f"{typed} = {ast.unparse(default)}"


def _unquoted(annotation: ast.expr | None) -> ast.expr | None:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def _parsed(value: object) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]  # type: ignore[arg-type]


def _fields(kind: type) -> Iterator[str]:
    """A row for each field of a data class or a named tuple, with the comment beside or above it."""
    if not is_dataclass(kind) and not hasattr(kind, "_fields"):
        return
    lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    node = _parsed(kind)
    for field in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_"):
            at = field.lineno - 2
            above = []
            while lines[at].strip().startswith("#"):
                above.insert(0, lines[at].strip(" #"))
                at -= 1
            beside = lines[(field.end_lineno or 0) - 1].partition("  # ")[2]
            kind_of = ast.unparse(_unquoted(field.annotation) or field.annotation)
            cells = (f"`{ast.unparse(field.target)}`", f"`{kind_of}`", " ".join([*above, beside]))
            yield "| " + " | ".join(cell.replace("|", "\\|").strip() for cell in cells) + " |"


def _prose(value: object) -> str:
    """A docstring as Markdown, its examples as code."""
    doc = shown(inspect.getdoc(value) or "", NAMES)
    code = r"\g<0>".join(("```python\n", "\n```"))
    return re.sub(r"(?m)^>>> .+(?:\n.+)*", code, doc)


if __name__ == "__main__":
    write_whole(REFERENCE, reference().encode())
    print(f"Wrote {REFERENCE}.")
