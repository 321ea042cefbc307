"""The public names of a package, each imported when it is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

from model.system.extras import needed_by


def later(
    package: str, homes: Mapping[str, str], *, needs: str | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__` (PEP 562).

    Args:
        homes: the names, each with the module below the package that has it.
        needs: a package of an extra that they import; without it `dir` lists none, because `help` reads each.

    Using a name raises MissingExtraError where a package of an extra is missing.
    """

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needed_by(name):
            return getattr(import_module(f"{package}.{homes[name]}"), name)

    def names() -> list[str]:
        offered = homes if needs is None or find_spec(needs) else ()
        return sorted({*vars(sys.modules[package]), *offered})

    return attribute, names
