"""A change of the mechanism as parameters of a link, and back. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import get_args

from model.nn.intervention import Intervention, MaskChoice

MASKS: tuple[MaskChoice, ...] = get_args(MaskChoice)
PARAMETERS = frozenset(field.name for field in fields(Intervention))
_LENGTH_LIMIT = 20_000  # characters of one parameter
_NUMBER = re.compile(
    r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,4})?|[+-]?inf", re.ASCII | re.I
)
_UNCHANGED = Intervention()


def written_change(change: Intervention) -> dict[str, str]:
    """The parameters of a link that bring a change back; what is unchanged is left out."""
    return {
        field.name: _put(value)
        for field in fields(Intervention)
        if (value := getattr(change, field.name)) != getattr(_UNCHANGED, field.name)
    }


def read_change(parameters: Mapping[str, object]) -> tuple[Intervention, tuple[str, ...]]:
    """The change of a link, and a sentence for each part that could not be read. Never raises."""
    values: dict[str, object] = {}
    problems = []
    for name in sorted(PARAMETERS & parameters.keys()):
        try:
            value = _READERS[name](_short(written(parameters[name])))
            Intervention(**{name: value})  # type: ignore[arg-type]
        except ValueError as error:
            problems.append(f"The link's “{name}” was left out: {error}")
        else:
            values[name] = value
    return Intervention(**values), tuple(problems)  # type: ignore[arg-type]


def written(value: object) -> str:
    """A parameter as it stands in a link. Raises ValueError for what no link can hold."""
    if not isinstance(value, str):
        raise ValueError("it is not a text.")
    return value


def whole(text: str) -> int:
    """A whole number from 0 up, of ordinary digits. Raises ValueError for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError("it is not a number from 0 up, or one too large.")
    return int(text)


def _put(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, frozenset):
        return str(value)
    return ",".join(
        ":".join(str(part) for part in member) if isinstance(member, tuple) else str(member)
        for member in sorted(value)
    )


def _short(text: str) -> str:
    if len(text) > _LENGTH_LIMIT:
        raise ValueError(f"it is longer than {_LENGTH_LIMIT:,} characters.")
    return text


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError("it is not a number.")
    return float(text)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("it must be 0 or 1.")
    return text == "1"


def _mask(text: str) -> str:
    if text not in MASKS:
        raise ValueError(f"it must be one of {', '.join(MASKS)}.")
    return text


def _members(read: Callable[[str], object]) -> Callable[[str], frozenset[object]]:
    return lambda text: frozenset(read(member) for member in text.split(",") if member)


def _edge(text: str) -> tuple[int, int]:
    query, colon, key = text.partition(":")
    if not colon:
        raise ValueError("each edge is written as query:key.")
    return whole(query), whole(key)


def _head(text: str) -> tuple[str, int]:
    name, colon, head = text.rpartition(":")
    if not colon:
        raise ValueError("each head is written as layer:head.")
    return name, whole(head)


_READERS: dict[str, Callable[[str], object]] = {
    "scale": _number,
    "mask": _mask,
    "hidden": _members(whole),
    "blocked": _members(_edge),
    "fill": _number,
    "positions": _switch,
    "ablated": _members(_head),
    "dropout": _number,
    "seed": whole,
    "only": _members(str),
}
