"""What the lines of a stage are written from, and how they are kept."""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from model.nn.intervention import UNCHANGED, Intervention
from model.nn.norms import NormKind
from model.nn.positions import RotaryPairs
from model.nn.stages import SCORE_STAGES, STAGES, ScoreName
from model.trace.records import Attention

VectorStage = Literal["query", "key", "value"]
LaterStage = ScoreName | Literal["masked"]
# Between the scaled scores and the weights, in this order.
LATER: tuple[LaterStage, ...] = (*(stage.name for stage in SCORE_STAGES), "masked")
StepName = Literal["scores", "scaled"] | LaterStage | Literal["weights", "output"]
Surrounding = Literal["positions", "norm", "query_norm", "key_norm", "concatenated", "written"]
CodeStage = VectorStage | StepName | Surrounding
Style = Literal["plain", "einsum", "loops", "torch"]
STYLES: Mapping[Style, str] = {
    "plain": "tensors",
    "einsum": "einsum",
    "loops": "loops",
    "torch": "torch.nn",
}
MaskKind = Literal["none", "future", "own"]


@dataclass(frozen=True)
class SnippetLine:
    """One line of code, and what stands beside it: shapes, or a word."""

    code: str
    beside: str = ""


@dataclass(frozen=True)
class Snippet:
    """The lines of one stage in one style.

    Indices of the chosen cell are slots: @head@, @query@, @key@, @dimension@. given: names that the lines
    read. after: the stages whose lines come before these in a script. result: the chosen cell's number.
    """

    lines: tuple[SnippetLine, ...]
    given: tuple[str, ...]
    result: str
    after: tuple[CodeStage, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class NormFacts:
    """A norm of each head's queries and keys."""

    kind: NormKind
    shifts: bool
    epsilon: float


@dataclass(frozen=True)
class Vector:
    """How the queries, keys or values of a layer come of x. read: the lines of a script that read x, the
    weights and the angles from files."""

    read: tuple[str, ...]
    rows: int  # tokens of x
    d_model: int
    bias: bool
    norm: NormFacts | None = None
    turned: int = 0  # dimensions that rotary positions turn
    pairs: RotaryPairs = "halves"


@dataclass(frozen=True)
class Around:
    """The code of a stage before the queries or after the outputs. read: the lines of a script that read what
    it starts from. shapes: of what its lines are given."""

    snippets: Mapping[Style, Snippet]
    read: tuple[str, ...]
    shapes: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Origin:
    """What code needs beside the record of a layer: the intervention, how queries, keys and values are made,
    and the stages around the heads. refusal: why vectors cannot be said, as a sentence."""

    intervention: Intervention = UNCHANGED
    vectors: Mapping[CodeStage, Vector] = field(default_factory=dict)
    around: Mapping[CodeStage, Around] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Facts:
    """What the lines of a layer's stages depend on."""

    name: str
    heads: int
    groups: int  # heads of keys and values
    queries: int
    keys: int
    width: int
    value_width: int
    scale: float
    mask: MaskKind
    mask_shape: tuple[int, ...]
    mask_value: float
    later: tuple[LaterStage, ...]  # which of those are stages of their own
    needs: Mapping[str, Any]  # of the stages that it has beside those, by their fields
    empty_rows: bool  # some query may attend to no key
    dropout: float
    seed: int

    @classmethod
    def of(
        cls,
        attention: Attention,
        intervention: Intervention,
        later: tuple[LaterStage, ...] | None = None,
    ) -> "Facts":
        """The facts of a recorded sub-layer.

        Args:
            intervention: of the run; its dropout and seed are read.
            later: the stages that are shown; None: those of this layer, and a mask.
        """
        query, key, value = attention.vectors
        mask = attention.mask
        masks = mask is not None and not bool(mask.all())
        kind: MaskKind = "future" if attention.look_ahead else "own"
        empty = mask is not None and not bool(mask.any(-1).all())
        return cls(
            name=attention.name,
            heads=attention.heads,
            groups=len(key),
            queries=query.shape[1],
            keys=key.shape[1],
            width=query.shape[-1],
            value_width=value.shape[-1],
            scale=float(attention.scale),
            mask=kind if masks else "none",
            mask_shape=() if mask is None else mask.shape,
            mask_value=float(attention.mask_value),
            later=_own(attention) if later is None else later,
            needs={stage.field: stage.of(attention) for stage in STAGES if stage.is_in(attention)},
            empty_rows=empty and np.isneginf(attention.mask_value).item(),
            dropout=intervention.dropout if attention.drops else 0.0,
            seed=zlib.crc32(f"{intervention.seed}:{attention.name}".encode()),
        )

    @property
    def shared(self) -> int:
        """Heads of queries that share a head of keys and values."""
        return self.heads // self.groups

    @property
    def scaling(self) -> str:
        """What follows the scores: " / 32**0.5"."""
        if self.divides_by_root:
            return f" / {self.width}**0.5"
        return f" * {self.scale!r}"

    @property
    def divides_by_root(self) -> bool:
        return math.isclose(self.scale, self.width**-0.5, rel_tol=1e-6)

    @property
    def fill(self) -> str:
        """What a masked score becomes."""
        return repr(self.mask_value) if math.isfinite(self.mask_value) else 'float("-inf")'

    @property
    def all_cells(self) -> str:
        return shape(self.heads, self.queries, self.keys)

    def before(self, stage: LaterStage | Literal["weights"]) -> CodeStage:
        """The stage whose numbers another one reads."""
        ahead = LATER if stage == "weights" else LATER[: LATER.index(stage)]
        return next((one for one in reversed(ahead) if one in self.later), "scaled")

    @property
    def fills(self) -> bool:
        """Whether a masked score becomes a number."""
        return self.mask != "none" and math.isfinite(self.mask_value)


def _own(attention: Attention) -> tuple[LaterStage, ...]:
    return (*(stage.name for stage in SCORE_STAGES if stage.is_in(attention)), "masked")


def shape(*sizes: int) -> str:
    """(8, 13, 32)"""
    return str(sizes)
