"""Code that fails when it runs, and its mend: mistakes of the notes, and sizes that do not fit.

The code is this app's own (failing_programs.py). It runs as it is shown, with the sizes that a reader chooses
within bounds; the message is the one that Python or PyTorch then gives.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from model.worked.notes import NotesPlace, quoted

if TYPE_CHECKING:
    from torch import Tensor

    Program = Callable[..., Tensor]

_IMPORTS = "import torch\nfrom torch import Tensor, nn\n\n"


@dataclass(frozen=True)
class ProgramSize:
    """A whole number that a reader may choose."""

    value: int
    lowest: int
    highest: int


@dataclass(frozen=True)
class RunResult:
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
    source: NotesPlace
    why: str
    wrong: "Program"
    mended: "Program"
    sizes: Mapping[str, ProgramSize]
    mistake: bool = True
    draws: bool = False

    def shown(self, program: "Program", chosen: Mapping[str, int] = {}) -> str:
        """The whole program as it is shown and run. chosen: sizes, where they are not those it opens with.

        Raises ValueError for a size that is not a whole number within its bounds.
        """
        sizes = ", ".join(f"{name}={value}" for name, value in self._values(chosen).items())
        return f"{_IMPORTS}{inspect.getsource(program)}\nresult = {program.__name__}({sizes})\n"

    def run(self, program: "Program", chosen: Mapping[str, int] = {}) -> RunResult:
        """The result of the program, or the message with which it ends. Raises ValueError as `shown` does."""
        values = self._values(chosen)
        try:
            return RunResult(program(**values).detach())
        except Exception as error:
            return RunResult(kind=type(error).__name__, message=str(error))

    def _values(self, chosen: Mapping[str, int]) -> Mapping[str, int]:
        values = {name: chosen.get(name, size.value) for name, size in self.sizes.items()}
        for name, value in values.items():
            size = self.sizes[name]
            if not (type(value) is int and size.lowest <= value <= size.highest):
                raise ValueError(
                    f"{name} is {value!r:.20}; it must be a whole number from {size.lowest} to "
                    f"{size.highest}."
                )
        return values


@cache
def failing_code() -> Mapping[str, FailingCode]:
    """All pieces by name, in the order of the page."""
    from model.worked import failing_programs  # imports torch: pages are drawn first

    found = {}
    for one in quoted("failing_code.toml"):
        sizes = {name: ProgramSize(*bounds) for name, bounds in one.pop("sizes").items()}
        function = one["name"].replace("-", "_")
        wrong = getattr(failing_programs, function)
        mended = getattr(failing_programs, f"{function}_mended")
        found[one["name"]] = FailingCode(sizes=sizes, wrong=wrong, mended=mended, **one)
    return found
