"""Code that fails when it runs, and its mend: mistakes of the notes, and sizes that do not fit.

The code is this app's own (failing_code.toml). It runs as it is shown, with the sizes that a reader chooses
within bounds; the message is the one that Python or PyTorch then gives.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from model.worked.source import Source, quoted

if TYPE_CHECKING:
    from torch import Tensor

_IMPORTS = "import torch\nfrom torch import nn\n\n"


@dataclass(frozen=True)
class Size:
    """A whole number that a reader may choose."""

    value: int
    lowest: int
    highest: int


@dataclass(frozen=True)
class Outcome:
    """What a run gave: a result, or a message with the kind of error."""

    result: "Tensor | None" = None
    kind: str = ""
    message: str = ""

    @property
    def failed(self) -> bool:
        return self.result is None

    @property
    def is_nan(self) -> bool:
        """Whether a number of the result is not a number."""
        return self.result is not None and bool(self.result.isnan().any())


@dataclass(frozen=True)
class FailingCode:
    """A piece of code that fails, and the mended one. `source`: where such code stands in the notes.

    mistake: whether it is a mistake of the notes; else the sizes do not fit. draws: both have random weights,
    so their numbers differ.
    """

    name: str
    title: str
    source: Source
    why: str
    wrong: str
    mended: str
    sizes: Mapping[str, Size]
    mistake: bool = True
    draws: bool = False

    def shown(self, code: str, chosen: Mapping[str, int] = {}) -> str:
        """The whole program as it is shown and run. chosen: sizes, where they are not those it opens with.

        Raises ValueError for a size that is not a whole number within its bounds.
        """
        values = {name: chosen.get(name, size.value) for name, size in self.sizes.items()}
        for name, value in values.items():
            size = self.sizes[name]
            if not (type(value) is int and size.lowest <= value <= size.highest):
                raise ValueError(
                    f"{name} is {value!r:.20}; it must be a whole number from {size.lowest} to "
                    f"{size.highest}."
                )
        numbers = f"{', '.join(values)} = {', '.join(map(str, values.values()))}\n"
        return f"{_IMPORTS}{numbers}{code}"

    def run(self, code: str, chosen: Mapping[str, int] = {}) -> Outcome:
        """What the program gives."""
        return run(self.shown(code, chosen))


def run(program: str) -> Outcome:
    """The `result` of a program of this module, or the message with which it ends."""
    names: dict[str, Any] = {"__name__": "shown"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what PyTorch will forbid one day
        try:
            exec(compile(program, "<shown>", "exec"), names)
        except Exception as error:
            return Outcome(kind=type(error).__name__, message=str(error))
    return Outcome(names["result"].detach())


@cache
def failing_code() -> Mapping[str, FailingCode]:
    """All pieces by name, in the order of the page."""
    found = {}
    for one in quoted("failing_code.toml"):
        sizes = {name: Size(*bounds) for name, bounds in one.pop("sizes").items()}
        programs = {kind: one.pop(kind).strip() + "\n" for kind in ("wrong", "mended")}
        found[one["name"]] = FailingCode(sizes=sizes, **programs, **one)
    return found
