"""What a public function is given, compared with its annotations where it enters.

A wrong argument would otherwise fail somewhere inside, in the words of PyTorch or of numpy, or not at all.
"""

import builtins
import numbers
import operator
import types
import typing
from builtins import callable as is_callable
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, wraps
from inspect import Parameter, signature
from itertools import chain
from pathlib import PurePath
from typing import Any, Literal, ParamSpec, SupportsIndex, TypeGuard, TypeVar, Union

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
LOOKED_AT = 10_000  # members of a collection
_HOME = __name__.removesuffix("system.border")
_WORDS: dict[object, str] = {
    type(None): "None",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    bytes: "bytes",
    np.ndarray: "an array of numbers",
}
# What to call instead, where one of our kinds was given and another one is wanted.
_INSTEAD = {
    ("Trace", "Model"): "`model.trace(text)` gives one",
    ("Trace", "str"): "`model.trace(text)` and `load_trace(path)` give one",
    ("Trace", "PosixPath"): "`load_trace(path)` gives one",
    ("Model", "str"): "`load_model(name)` gives one",
    ("Model", "Module"): "`opened(model, tokenizer)` gives one",
    ("Module", "Model"): "it is one of this package already: call its own `.trace(text)`",
    ("Module", "str"): "`load_model(name)` opens one by its name",
    ("Intervention", "Mapping"): "`Intervention(**fields)` gives one",
}


def at_border(function: Callable[P, R], *, besides: Collection[str] = ()) -> Callable[P, R]:
    """The same function, which refuses an argument that its annotation does not allow. Numbers of numpy and
    of PyTorch count as numbers, a list as a tuple, True not as 1.

    Args:
        besides: arguments that the function reads in ways of its own.

    Raises ValueError with the argument's name, and what it must be.
    """
    kinds = {name: one.kind for name, one in signature(function).parameters.items()}
    unread = {*besides, *(name for name, kind in kinds.items() if kind in _SEVERAL)}
    places = [name for name, kind in kinds.items() if kind in _BY_PLACE]

    @wraps(function)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        hints = hints_of(function)
        for name, value in chain(zip(places, args, strict=False), named.items()):
            if name in hints and name not in unread:
                check_argument(name, value, hints[name])
        return function(*args, **named)

    return checked


_SEVERAL = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def check_fields(record: object, *, besides: Collection[str] = ()) -> None:
    """Raises ValueError where a field of a dataclass is not what its annotation allows. besides: fields that
    the class reads in ways of its own."""
    for name, hint in hints_of(type(record).__init__).items():
        if name not in besides and type(value := getattr(record, name)) is not hint:
            check_argument(name, value, hint)


def meant(wanted: str, names: Iterable[str]) -> str:
    """The nearest name, for a sentence about a wrong one; "" where none is near."""
    near = get_close_matches(wanted, [*names], 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def check_name(of: str, name: object, known: Collection[str]) -> None:
    """Raises ValueError where a thing of this kind has no such name, with the nearest one. of: the kind."""
    if not isinstance(name, str) or name not in known:
        near = meant(name, known) if isinstance(name, str) else ""
        raise ValueError(f"There is no {of} {name!r}{near}; there are {', '.join(known)}.")


def check_argument(name: str, value: object, hint: Any) -> None:
    """Raises ValueError where a value is not what an annotation allows."""
    if type(value) in _whole_classes(hint) or _allows(hint, value):
        return
    choices = [one for one in _choices(hint) if isinstance(one, str)]
    near = meant(value, choices) if isinstance(value, str) else ""
    instead = "".join(
        f" ({advice})"
        for (wanted, given), advice in _INSTEAD.items()
        if wanted in _classes(hint) and given in {one.__name__ for one in type(value).__mro__}
    )
    raise ValueError(f"{name} is {_shown(value)}; it must be {_words(hint)}{near or instead}.")


@lru_cache(maxsize=1024)
def _whole_classes(hint: Any) -> frozenset[Any]:
    """The classes every instance of which an annotation allows: most arguments need no more looking."""
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain = (one for one in members if isinstance(one, type) and typing.get_origin(one) is None)
    return frozenset(plain) - {np.ndarray}


class _Later(type):
    """The annotation of a class that is imported for type checkers only: known by its name."""

    def __instancecheck__(cls, value: object) -> bool:
        homes = (_HOME, "pandas", "torch")
        return any(
            one.__name__ == cls.__name__ and one.__module__.startswith(homes)
            for one in type(value).__mro__
        )

    def __getattr__(cls, name: str) -> "_Later":  # of a module, pd.DataFrame
        if name.startswith("_"):
            raise AttributeError(name)
        return _Later(name, (), {})


class _Names(dict[str, Any]):
    """The names of an annotation; one that is not imported stands for its class."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return _Later(name, (), {})


@lru_cache(maxsize=1024)
def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of its arguments; names that are imported for type checkers only stand for classes."""
    inner: Any = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    hints = typing.get_type_hints(inner, None, _Names(inner.__globals__))
    return {name: hint for name, hint in hints.items() if name != "return"}


def _origin(hint: Any) -> Any:
    """The class of an annotation with members; of an alias with a name, that of what it stands for. numpy's
    `NDArray` is one from Python 3.12 on."""
    origin = typing.get_origin(hint)
    return typing.get_origin(getattr(origin, "__value__", None)) or origin


def _allows(hint: Any, value: object) -> bool:
    origin, members = _origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return type(value) in members or any(_allows(one, value) for one in members)
    if hint in (Any, object):
        return True
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in members)
    if hint is int:
        return is_whole(value)
    if hint is float:
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return real or is_whole(value) or _is_single(value)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    kind = origin or hint
    if kind is np.ndarray:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
            return False
        try:
            return np.asarray(value).dtype.kind in "biuf"
        except (TypeError, ValueError, RuntimeError):
            return False
    if not isinstance(kind, type) or (getattr(kind, "_is_protocol", False) and not _runtime(kind)):
        return True
    if issubclass(kind, PurePath):
        return isinstance(value, PurePath)
    if kind.__name__ == "Callable":
        return is_callable(value)
    if kind.__name__ == "BinaryIO":
        return hasattr(value, "read")
    if not members or not issubclass(kind, Iterable):
        return isinstance(value, kind)
    if issubclass(kind, Mapping):
        pairs = value.items() if isinstance(value, Mapping) else [None]
        return all(pair is not None and all(map(_allows, members, pair)) for pair in pairs)
    return _holds(kind, members, value)


def _holds(kind: type, members: tuple[Any, ...], value: Any) -> bool:
    """Whether a value is a collection of what an annotation names: of any kind, but no text and no
    dictionary, and no set where the order counts."""
    if hasattr(value, "tolist") and getattr(value, "ndim", None) and Any not in members:
        value = value[0] if value.ndim == 2 and len(value) == 1 else value  # (1, token)
        value = value[: LOOKED_AT + 1].tolist()
    any_kind = Sequence if issubclass(kind, Sequence) else kind
    is_list = isinstance(value, list | tuple | set | frozenset) and not issubclass(kind, Sequence)
    is_text = isinstance(value, str | bytes | bytearray | Mapping)
    if is_text or not (is_list or isinstance(value, any_kind)):
        return False
    if not isinstance(value, Collection):
        return True  # it can be read once only
    if kind is tuple and members[-1] is not Ellipsis:
        return len(value) == len(members) and all(map(_allows, members, value))
    return len(value) > LOOKED_AT or all(
        type(member) is members[0] or _allows(members[0], member) for member in value
    )


def is_whole(value: Any) -> TypeGuard[SupportsIndex]:
    """Whether it is a whole number, of Python, numpy or PyTorch, and not True or False."""
    if isinstance(value, bool | np.bool_):
        return False
    try:
        operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def _is_single(value: object) -> bool:
    """A number in an array or a tensor of one."""
    return hasattr(value, "__array__") and getattr(value, "ndim", 1) == 0


def _runtime(kind: type) -> bool:
    return getattr(kind, "_is_runtime_protocol", False) is True


def _choices(hint: Any) -> tuple[Any, ...]:
    members = typing.get_args(hint)
    if _origin(hint) is Literal:
        return members
    return tuple(one for member in members for one in _choices(member))


def _classes(hint: Any) -> set[str]:
    members = typing.get_args(hint)
    if _origin(hint) in (Union, types.UnionType):
        return set().union(*map(_classes, members))
    return {getattr(hint, "__name__", "")}


def _words(hint: Any) -> str:
    """What an annotation allows, in words."""
    origin, members = _origin(hint), typing.get_args(hint)
    kind = origin or hint
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, members)))
    if origin is Literal:
        return f"one of {', '.join(map(repr, members))}"
    if kind in _WORDS:
        return _WORDS[kind]
    name = getattr(kind, "__name__", str(kind))
    if name == "Callable":
        return "a function"
    if name == "BinaryIO":
        return "an open file"
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return "a path"
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return "a dictionary"
    if isinstance(kind, type) and issubclass(kind, Iterable) and members:
        if kind is tuple and members[-1] is not Ellipsis:
            return f"a tuple of {' and '.join(map(_words, members))}"
        return f"a collection (each member {_words(members[0])})"
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: object) -> str:
    """A value on one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
