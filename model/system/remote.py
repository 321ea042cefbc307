"""What lies in another process: a model or a run, of which this process knows only what identifies it.

A function that is `asked` runs where the model or the run lies that it is given, and its result travels.
Where both lie in this process, it is an ordinary function.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

TURN = (
    "turn"  # argument: makes a context for a part of the work; where the work is done has its own
)


class Remote:
    """A model or a run in another process."""

    @property
    def reference(self) -> Any:
        """What stands for it in a message."""
        raise NotImplementedError

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        """The result of an asked function there, with these arguments by name. Raises what it
        raises. Of a generator: an iterator; each next value is computed when it is asked for."""
        raise NotImplementedError


def asked(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that runs where its model or run lies. Its arguments are plain data beside these."""
    name = f"{function.__module__}:{function.__qualname__}"
    signature = inspect.signature(function)

    @wraps(function)
    def ask(*args: P.args, **named: P.kwargs) -> R:
        there = next(filter(None, map(_remote, (*args, *named.values()))), None)
        if there is None:
            return function(*args, **named)
        given = signature.bind(*args, **named).arguments
        given.pop(TURN, None)
        result: R = there.ask(name, given)
        return result

    vars(ask)["is_asked"] = True
    return ask


def asked_function(name: str) -> Callable[..., Any]:
    """The function itself, by the name under which it is asked. Raises LookupError for any other name."""
    module, _, path = name.partition(":")
    if module.startswith("model."):
        with suppress(AttributeError, ImportError):
            found: Any = import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
            found = found.fget if isinstance(found, property) else found
            if getattr(found, "is_asked", False):
                function: Callable[..., Any] = found.__wrapped__
                return function
    raise LookupError(f"{name!r} may not be asked.")


def takes_turns(function: Callable[..., Any]) -> bool:
    """Whether a function does its work in turns."""
    return TURN in inspect.signature(function).parameters


def _remote(given: object) -> Remote | None:
    """What lies elsewhere of an argument: itself, or the first of several."""
    if isinstance(given, tuple) and given:
        given = given[0]
    return given if isinstance(given, Remote) else None
