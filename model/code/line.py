"""One line of the listing: its code, the shape of its result, and the block of the model that it is in."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from model.nn.config import TransformerConfig
from model.nn.places import Part, Place

Length = Literal["n", "m", "source", "target"]  # tokens: n of the queries, m of the keys
Shape = tuple[int | Length, ...]
INDENT = "    "


@dataclass(frozen=True)
class Line:
    """A line of code. shape: of what it computes; None for a line that computes nothing. stage: the stage of
    attention that it computes."""

    code: str
    shape: Shape | None = None
    part: Part | None = None
    stage: str = ""

    def shaped(self, lengths: Mapping[Length, int] | None = None) -> str:
        """The shape as it is written, (8, 13, 32); with letters for lengths that are not given."""
        if self.shape is None:
            return ""
        known = lengths or {}
        sizes = ", ".join(
            str(size if isinstance(size, int) else known.get(size, size)) for size in self.shape
        )
        return f"({sizes},)" if len(self.shape) == 1 else f"({sizes})"

    def written(self, lengths: Mapping[Length, int] | None = None) -> str:
        """The line with its shape in a comment."""
        shape = self.shaped(lengths)
        return f"{self.code}  # {shape}" if shape else self.code


@dataclass(frozen=True)
class Plan:
    """What a listing is written from: the config, and the names of the weights.

    place: the attention sub-layer whose lengths are shown, where one function serves several.
    """

    config: TransformerConfig
    names: Collection[str]
    place: Place | None = None

    def has(self, ending: str) -> bool:
        """Whether a weight of the model has a name that ends so."""
        return any(name == ending or name.endswith(f".{ending}") for name in self.names)

    @property
    def reads_two(self) -> bool:
        """Whether it is an encoder–decoder."""
        return self.config.shape == "encoder-decoder"


def inside(part: Part) -> Callable[..., Line]:
    """Lines of a function's body in one block: code, then the sizes of its result."""

    def line(code: str, *shape: int | Length, stage: str = "") -> Line:
        return Line(INDENT + code, shape or None, part, stage)

    return line


def linear(plan: Plan, read: str, name: str, within: str = "") -> str:
    """x @ W.T + b in code. within: what stands before the name among the names of all weights."""
    bias = f' + w["{name}.bias"]' if plan.has(f"{within}{name}.bias") else ""
    return f'{read} @ w["{name}.weight"].T{bias}'


def logits_table(names: Collection[str]) -> str:
    """The name of the matrix that makes the logits: the token table where the two are tied. names: of all
    weights."""
    tables = ("output", "embedding.tokens", "decoder.embedding.tokens")
    return next(name for name in tables if f"{name}.weight" in names)
