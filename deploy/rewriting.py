"""Rewrites the sources of this tree for the wheel, where all of them stand in one package.

Python's own tokenizer says where an import or a string begins. Changed are imports, strings that are the name
of a module, and the code that a string shows to a reader; lines and comments stay as they are.
"""

import io
import re
import tokenize
from collections.abc import Container, Iterator, Mapping
from itertools import accumulate, pairwise

PACKAGE = "attention_lens"
ROOTS = {"app", "model", "pages", "viz"}
_ROOT = rf"(?:{'|'.join(sorted(ROOTS))})"
_NAME = re.compile(rf"""(?P<open>['"])({_ROOT}(?:\.\w+)+)(?P=open)""")
_STARTED = re.compile(rf"python -m (?={_ROOT}\b)")
_SHOWN = re.compile(rf"\bfrom ({_ROOT}(?:\.\w+)*) import\b(?: (\w+(?:, \w+)*))?")
_RENAMED = re.compile(r"import [\w.]+ as \w+")
_BEFORE_A_STATEMENT = {tokenize.NEWLINE, tokenize.ENCODING, tokenize.INDENT, tokenize.DEDENT}
_NOTHING = {tokenize.NL, tokenize.COMMENT}
_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}

Edit = tuple[int, int, str]  # from which letter to which, and what stands there instead


def rewritten(source: str, modules: Container[str], face: Mapping[str, str]) -> str:
    """A module of the tree as it stands in the package.

    modules: the dotted names of the tree. face: the package's public names, each with its module in the tree.
    Raises ValueError for an import that has no equal there.
    """
    lines = io.StringIO(source, newline="").readlines()
    starts = [0, *accumulate(map(len, lines))]
    tokens = list(tokenize.generate_tokens(iter([*lines, ""]).__next__))

    def place(position: tuple[int, int]) -> int:
        return starts[position[0] - 1] + position[1]

    edits: list[Edit] = []
    for at, statement in _imports(tokens):
        name = place(tokens[at + 1].start)
        if statement.startswith("import ") and not _RENAMED.fullmatch(statement):
            raise ValueError(f"line {tokens[at].start[0]}: write “from … import …” here")
        edits.append((name, name, f"{PACKAGE}."))
    for token in tokens:
        if token.type in _STRINGS:
            begin, end = place(token.start), place(token.end)
            edits.append((begin, end, _string(source[begin:end], modules, face)))
    for begin, end, new in sorted(edits, reverse=True):
        source = source[:begin] + new + source[end:]
    return source


def shown(text: str, face: Mapping[str, str]) -> str:
    """A text for readers: its commands and its examples of code name the package."""

    def imported(found: re.Match[str]) -> str:
        module, names = found[1], (found[2] or "").split(", ")
        public = all(face.get(name) == f".{module}" for name in names)
        source = PACKAGE if public else f"{PACKAGE}.{module}"
        return found[0].replace(module, source, 1)

    return _SHOWN.sub(imported, _STARTED.sub(rf"\g<0>{PACKAGE}.", text))


def _imports(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    """Where a statement begins that imports from the tree, and its text up to the end of the line."""
    starts = True
    for at, token in enumerate(tokens):
        if token.type in _NOTHING:
            continue
        if starts and token.string in ("from", "import") and ROOTS & {*_sources(tokens, at)}:
            rest = token.line[token.start[1] :]
            yield at, rest.partition("#")[0].strip()
        starts = token.type in _BEFORE_A_STATEMENT or token.string in (":", ";")


def _sources(tokens: list[tokenize.TokenInfo], at: int) -> Iterator[str]:
    """The first name of each module that a statement imports from."""
    yield tokens[at + 1].string
    if tokens[at].string == "import":
        for token, following in pairwise(tokens[at + 1 :]):
            if token.type == tokenize.NEWLINE or token.string == ";":
                return
            if token.string == ",":
                yield following.string


def _string(written: str, modules: Container[str], face: Mapping[str, str]) -> str:
    name = _NAME.fullmatch(written)
    if name and name[2] in modules:
        return f"{name[1]}{PACKAGE}.{name[2]}{name[1]}"
    return shown(written, face)
