"""What strangers wrote, read strictly: one refusal for all that can be wrong with it."""

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from model.system.deadline import PassTooLongError

Validated = TypeVar("Validated")
DEEPEST = 12  # lists and objects inside one another, in JSON that is read strictly
# Nothing is tried twice, or a text without an end would take the square of its length.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
# What zipfile raises for an archive that is damaged, or is another one.
ZIP_DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error,
)  # fmt: skip
_DAMAGED: tuple[type[Exception], ...] = (
    *ZIP_DAMAGED, ArithmeticError, LookupError, OSError, TypeError, ValueError,
)  # fmt: skip


@contextmanager
def refusing(sentence: str, *also: type[Exception]) -> Iterator[None]:
    """Whatever is wrong with a file becomes one ValueError: the sentence and the first line of what
    was found, without control characters. A pass that took too long stays what it is. also: what a library
    raises beside Python's own errors."""
    try:
        yield
    except PassTooLongError:
        raise
    except _DAMAGED + also as error:
        said = "".join(letter for letter in str(error) if letter.isprintable() or letter == "\n")
        clause = said.strip().partition("\n")[0][:300].rstrip(".") or type(error).__name__
        raise ValueError(f"{sentence} {clause}.") from error


def validated(kind: type[Validated], text: str | bytes) -> Validated:
    """What a JSON text holds, of a model or a dataclass. Raises ValueError, in a clause, for anything
    else."""
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, wrong["loc"]))[:100]
        raise ValueError(f"what it says of “{where}” is not so: {wrong['msg']}") from error


def strict_json(text: str) -> Any:
    """What a JSON text holds. Raises ValueError for one that is nested deeply, names something twice, or
    has numbers that JSON does not know."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            raise ValueError("its header is nested too deeply")
    try:
        return json.loads(text, object_pairs_hook=_named_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError("its header is not JSON") from error


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("its header names something twice")
    return named


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"its header holds {constant}")
