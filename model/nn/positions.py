"""The kinds of positions: how each reaches a model, its numbers, its formulas and its words.

A new kind is a class here and an entry of `POSITIONS`; what it adds to scores is a module of `BIASES` in
`biases.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from model.system.words import Words

say = Words("nn.positions")

PositionKind = Literal[
    "learned", "sinusoidal", "rotary", "alibi", "buckets", "disentangled", "none"
]
RotaryPairs = Literal["halves", "neighbours", "other"]
PositionCode = Literal["table", "sinusoidal", "rotary"]  # of a table's lines in `snippets`
_LETTERS: Mapping[RotaryPairs, tuple[str, str]] = {
    "halves": ("i", "i+r/2"),
    "neighbours": ("2i", "2i+1"),
}
_INTO_SCORES = say("into_scores")


class Sizes(Protocol):
    """What a kind of positions asks of a config (`TransformerConfig`)."""

    @property
    def d_model(self) -> int: ...
    @property
    def head_width(self) -> int: ...
    @property
    def rotary_dim(self) -> int: ...
    @property
    def turns_positions(self) -> bool: ...
    @property
    def rotary_pairs(self) -> RotaryPairs: ...
    @property
    def buckets(self) -> int: ...
    @property
    def farthest(self) -> int: ...


class PositionLaw:
    """One kind of positions; this one is no positions at all."""

    words: ClassVar[str] = say("position_law_words")  # what such a model has
    without: ClassVar[str] = say("position_law_without")
    adds: ClassVar[bool] = False  # a vector to each token's
    turns: ClassVar[bool] = False  # queries and keys
    biases: ClassVar[bool] = False  # the scores
    relative: ClassVar[bool] = (
        False  # by a slope of each head: the numbers of a row count relative to its own
    )

    def check(self, config: Sizes) -> None:
        """Raises ValueError for sizes that do not fit."""


class TableLaw(PositionLaw, ABC):
    """Positions that are rows of a table: of vectors, or of angles."""

    title: ClassVar[str]
    code: ClassVar[PositionCode]
    look: ClassVar[str]  # what to look for in the table
    alike: ClassVar[str]  # and in the picture of how alike positions are
    similarity: ClassVar[str] = (
        r"\cos(PE_m, PE_n) = \frac{PE_m \cdot PE_n}{\lVert PE_m \rVert \, \lVert PE_n \rVert}"
    )
    of_width: ClassVar[str] = "width"
    column: ClassVar[str] = "dimension"
    value: ClassVar[str] = "value"

    def width(self, config: Sizes) -> int:
        """How many numbers a row is made for."""
        return config.d_model

    def shown(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """What a picture draws of the table."""
        return rows

    @abstractmethod
    def formula(self, config: Sizes | None = None) -> str:
        """Where the numbers come from, in LaTeX."""

    @abstractmethod
    def cell(self, position: int, column: int, value: float, width: int, base: float) -> str:
        """One number of the table, in LaTeX.

        Args:
            position, column: where it stands.
            value: the number; of rotary positions the angle in radians.
            width: what `width` gives.
            base: of rotary positions.
        """


class Learned(TableLaw):
    words, adds = "learned positions", True
    title, code = "Learned", "table"
    look = say("learned_look")
    alike = say("learned_alike")

    def formula(self, config: Sizes | None = None) -> str:
        return r"PE_p = W_p \quad \text{(row } p \text{ of a learned table)}"

    def cell(self, position: int, column: int, value: float, width: int, base: float) -> str:
        return rf"W_{{{position},\,{column}}} = {value:.4f}"


def pair_angles(
    positions: NDArray[np.float64], width: int, base: float = 10_000.0
) -> NDArray[np.float64]:
    """p / base^(2i/width), (position, pair)."""
    return positions[:, None] / base ** (np.arange(0, width, 2) / width)


def sinusoidal(
    positions: NDArray[np.float64], width: int, base: float = 10_000.0
) -> NDArray[np.float64]:
    """Sine in the even columns, cosine of the same angle in the odd ones, (position, width).

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    angles = pair_angles(positions, width, base)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(positions), -1)[:, :width]


class InPairs(TableLaw):
    """Angles p / base^(2i/width), one for each pair of numbers."""

    def check(self, config: Sizes) -> None:
        if config.head_width % 2:
            raise ValueError(f"{self.code} positions need an even head width.")

    def rows(self, length: int, width: int, base: float = 10_000.0) -> NDArray[np.float64]:
        """(position, column) by the formula.

        Args:
            length: positions, from 0.
            width: numbers that the pairs are made of: half as many columns of angles.
            base: its power divides the position.
        """
        return pair_angles(np.arange(length, dtype=np.float64), width, base)


class Sinusoidal(InPairs):
    """Vaswani et al. 2017, section 3.5: sine in even columns, cosine of the same angle in odd ones."""

    words, adds = "sinusoidal positions", True
    title, code = "Sinusoidal", "sinusoidal"
    look = say("sinusoidal_look")
    alike = say("sinusoidal_alike")

    def rows(self, length: int, width: int, base: float = 10_000.0) -> NDArray[np.float64]:
        """(position, width) by the formula.

        Args:
            length: positions, from 0.
            base: is not read: here it is 10,000.
        """
        return sinusoidal(np.arange(length, dtype=np.float64), width)

    def formula(self, config: Sizes | None = None) -> str:
        return (
            r"\begin{aligned} PE_{p,\,2i} &= \sin\!\left(\frac{p}{10000^{2i/d}}\right) \\"
            r" PE_{p,\,2i+1} &= \cos\!\left(\frac{p}{10000^{2i/d}}\right) \end{aligned}"
        )

    def cell(self, position: int, column: int, value: float, width: int, base: float) -> str:
        wave = r"\cos" if column % 2 else r"\sin"
        power = rf"10000^{{{column - column % 2}/{width}}}"
        return (
            rf"PE_{{{position},\,{column}}} = {wave}\!\left(\frac{{{position}}}{{{power}}}\right)"
            rf" = {value:.4f}"
        )


class Rotary(InPairs):
    """Su et al. 2021, "RoFormer", section 3.4.2: the angle by which each pair of a query or key is turned."""

    words, turns = "rotary positions", True
    without = say("rotary_without")
    title, code = "Rotary", "rotary"
    look = say("rotary_look")
    alike = say("rotary_alike")
    similarity = r"\frac{2}{r} \sum_i \cos(\alpha_{m,i} - \alpha_{n,i})"
    of_width, column, value = "head width", "pair", say("rotary_value")

    def width(self, config: Sizes) -> int:
        return config.rotary_dim

    def shown(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.cos(rows)

    def formula(self, config: Sizes | None = None) -> str:
        """The pairs are those that the model turns; where it has none of them, those of the paper."""
        pairs: RotaryPairs = "neighbours"
        if config is not None and config.turns_positions:
            pairs = config.rotary_pairs
        turned = r"q' &= R(\alpha_p)\, q"
        if pairs in _LETTERS:
            one, other = _LETTERS[pairs]
            turned = (
                rf"\begin{{bmatrix}} q_{{{one}}}' \\ q_{{{other}}}' \end{{bmatrix}} &= \begin{{bmatrix}}"
                r" \cos\alpha & -\sin\alpha \\ \sin\alpha & \cos\alpha \end{bmatrix}"
                rf" \begin{{bmatrix}} q_{{{one}}} \\ q_{{{other}}} \end{{bmatrix}}"
            )
        lines = [turned, r"\alpha_{p,i} &= p / b^{\,2i/r}"]
        if config is not None:
            lines.append(rf"r &= {self.width(config)}")
        rows = r" \\ ".join(lines)
        return rf"\begin{{aligned}} {rows} \end{{aligned}}"

    def cell(self, position: int, column: int, value: float, width: int, base: float) -> str:
        power = rf"{base:g}^{{{2 * column}/{width}}}"
        return rf"\alpha_{{{position},\,{column}}} = {position} / {power} = {value:.4f}"


class BiasLaw(PositionLaw, ABC):
    """Numbers that are added to the scores, by the distance of two tokens."""

    biases = True
    without = _INTO_SCORES
    look: ClassVar[str] = ""
    remark: ClassVar[str] = ""  # beside the check of its numbers
    in_steps: ClassVar[bool] = False  # whether some distances share a number

    @abstractmethod
    def formula(self, *, two_ways: bool = False) -> str:
        """What is added to the score of query i and key j. two_ways: whether later keys are read."""

    @abstractmethod
    def cell(self, distance: int, value: float, *, slope: float, bucket: int, head: int) -> str:
        """One head's number at one distance, in LaTeX.

        Args:
            distance: the key's position minus the query's.
            value: the number.
            slope: of the head, where it has one.
            bucket: of the distance, where there are some.
            head: its number.
        """


class Alibi(BiasLaw):
    """Press et al. 2022."""

    words = say("alibi_words")
    look = say("alibi_look")
    remark = say("alibi_remark")
    relative = True

    def formula(self, *, two_ways: bool = False) -> str:
        return r"b_{ij} = -m_h \cdot (i - j)"

    def cell(self, distance: int, value: float, *, slope: float, bucket: int, head: int) -> str:
        return rf"b = -{slope:.6g} \cdot {-distance} = {value:.4f}"


class Buckets(BiasLaw):
    """Raffel et al. 2020 (T5), section 2.1."""

    words = say("buckets_words")
    look = say("buckets_look")
    in_steps = True

    def check(self, config: Sizes) -> None:
        if not 4 <= config.buckets < 2 * config.farthest:
            raise ValueError("Buckets of distances: at least 4, and fewer than twice `farthest`.")

    def formula(self, *, two_ways: bool = False) -> str:
        steps, bucket = (r"\max(-d,\, 0)", "f(s)")
        if two_ways:
            steps, bucket = (r"\lvert d \rvert", r"f(s) + \tfrac{B}{2}\,[d > 0]")
        return (
            r"\begin{aligned} b_{ij} &= W_{\beta(j - i),\, h} \\"
            rf" \beta(d) &= {bucket},\quad s = {steps} \\"
            r" f(s) &= \begin{cases} s & s < e \\ \min\!\left(n - 1,\; e + \left\lfloor"
            r" \frac{\ln (s / e)}{\ln (D / e)} (n - e) \right\rfloor\right) & s \ge e \end{cases}"
            r" \end{aligned}"
        )

    def cell(self, distance: int, value: float, *, slope: float, bucket: int, head: int) -> str:
        return rf"b = W_{{\beta({distance}),\, {head}}} = W_{{{bucket},\, {head}}} = {value:.4f}"


class Disentangled(PositionLaw):
    """He et al. 2021 (DeBERTa): terms of content and position, which have no one number a distance."""

    biases, without = True, _INTO_SCORES
    words = say("disentangled_words")


SINUSOIDAL, ROTARY, ALIBI = Sinusoidal(), Rotary(), Alibi()
POSITIONS: Mapping[PositionKind, PositionLaw] = {
    "sinusoidal": SINUSOIDAL,
    "learned": Learned(),
    "rotary": ROTARY,
    "alibi": ALIBI,
    "buckets": Buckets(),
    "disentangled": Disentangled(),
    "none": PositionLaw(),
}
TABLES = {kind: law for kind, law in POSITIONS.items() if isinstance(law, TableLaw)}
