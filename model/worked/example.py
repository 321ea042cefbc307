"""A worked example: words, inputs, and a recipe that works it on a sheet, step after step.

The steps of attention are the same in many examples, so they are methods of the sheet, each with its formula
and one row or cell spelled out. Axes: rows are queries, columns are keys.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.arithmetic import Array64, attention
from model.worked import latex
from model.worked.code import Forms, forms_of
from model.worked.equality import settled
from model.worked.inputs import (
    AxisNames,
    Input,
    Labels,
    given,
    labelled,
    numbered,
    read_only,
    token_ids,
    whole,
)
from model.worked.notes import Printed, printed_steps

_ROUNDING = 32 * float(np.finfo(np.float64).eps)  # of a sum of some products, as a share

__all__ = [
    "Array64",
    "Example",
    "Input",
    "Labels",
    "QuantityKind",
    "Sheet",
    "Step",
    "given",
    "numbered",
    "read_only",
    "token_ids",
    "whole",
    "worked",
]

InputNames = tuple[str, ...]
QuantityKind = Literal["query", "key", "value", "score", "weight", "output", "other"]
_PROJECTIONS: dict[str, tuple[str, QuantityKind]] = {
    "Q": ("Queries", "query"),
    "K": ("Keys", "key"),
    "V": ("Values", "value"),
}


@dataclass(frozen=True, eq=False)
class Step:
    """One line of arithmetic: a general formula, the same with this example's numbers, the result.

    `result` has up to two axes and only finite numbers. `rows` and `columns` label its axes; along
    a single axis the labels stand in `columns`. `blocked` marks the cells a mask hides, in the
    shape of the result. `notes` is what the notes print; `comment` is a reason that holds for any
    inputs.
    """

    title: str
    formula: str
    result: Array64
    numbers: str | None = None
    rows: Labels = None
    columns: Labels = None
    quantity: QuantityKind = "other"
    notes: Printed | None = None
    comment: str | None = None
    blocked: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "result", read_only(self.result))
        if not np.isfinite(self.result).all():
            raise ValueError(f"These inputs make “{self.title}” too large to be shown.")
        lengths = tuple(len(labels) for labels in (self.rows, self.columns) if labels is not None)
        if lengths and lengths != self.result.shape:
            raise ValueError(f"“{self.title}” has {lengths} labels for {self.result.shape}.")

    @property
    def printed(self) -> Array64 | None:
        """What the notes print, in the shape of the result: NaN in a cell that they leave out.

        None where they print nothing.
        """
        if self.notes is None:
            return None
        return read_only(self.notes.values.reshape(self.result.shape))

    @property
    def differing(self) -> NDArray[np.bool_] | None:
        """Which cells the notes print otherwise, judged to the digits they print."""
        return None if self.notes is None else self.notes.differing(self.result)

    @property
    def agrees(self) -> bool | None:
        """Whether what the notes print is the result, to the digits they print."""
        differing = self.differing
        return None if differing is None else not bool(differing.any())

    @property
    def remark(self) -> str | None:
        """One sentence: the erratum of the notes where there is one, else the reason of the step."""
        erratum = None if self.notes is None else self.notes.erratum
        return erratum or self.comment


class Sheet:
    """`step` writes a step down; `numbers` and `remark` add to the step written last.

    matrices: what names such as W_Q stand for in `numbers`.
    """

    def __init__(self, matrices: Mapping[str, Array64]) -> None:
        self.steps: list[Step] = []
        self._matrices = matrices

    def step(
        self,
        title: str,
        formula: str,
        result: ArrayLike,
        *axes: AxisNames,
        quantity: QuantityKind = "other",
        blocked: NDArray[np.bool_] | None = None,
    ) -> Array64:
        """Writes down a result and hands it back. One word ("dim") numbers an axis of it."""
        values = np.asarray(result, dtype=np.float64)
        rows, columns = labelled(values.shape, axes)
        self.steps.append(
            Step(title, formula, values, None, rows, columns, quantity, blocked=blocked)
        )
        return self.steps[-1].result

    def numbers(self, line: str, *values: latex.Value) -> None:
        """The formula with this example's numbers: each "@" of the line takes one of the values.

        Write "=": where the digits shown do not give the result, "≈" is put there.
        """
        numbers = settled(latex.filled(line, *values), self._matrices)
        self.steps[-1] = replace(self.steps[-1], numbers=numbers)

    def remark(self, comment: str) -> None:
        """A reason that holds for any inputs."""
        self.steps[-1] = replace(self.steps[-1], comment=comment)

    def project(
        self,
        vectors: Array64,
        matrix: Array64,
        letter: str,
        tokens: InputNames,
        source: str = "X",
        title: str = "",
    ) -> Array64:
        """Each token's vector times W_Q, W_K or W_V."""
        name, quantity = _PROJECTIONS[letter]
        result = self.step(
            title or name,
            rf"{letter} = {source}\,W_{letter}",
            vectors @ matrix,
            tokens,
            "dim",
            quantity=quantity,
        )
        start, end = (vectors[0], letter), result[0]
        self.numbers(r"@_{\text{@}} = @\,W_@ = @", letter.lower(), tokens[0], *start, end)
        return result

    def scores(
        self,
        query: Array64,
        key: Array64,
        queries: InputNames,
        keys: InputNames | None = None,
        *,
        cell: tuple[int, int] = (0, -1),
        title: str = "Scores",
        formula: str = r"S = Q K^\top,\quad s_{ij} = q_i \cdot k_j",
    ) -> Array64:
        """Every query times every key, with one cell spelled out."""
        keys = keys or queries
        products = attention.dot_products(query, key)
        result = self.step(title, formula, products, queries, keys, quantity="score")
        i, j = cell
        line = r"s_{\text{@},\,\text{@}} = @ = @"
        self.numbers(line, queries[i], keys[j], latex.dot(query[i], key[j]), result[i, j])
        return result

    def scaled(
        self,
        scores: Array64,
        width: int,
        queries: InputNames,
        keys: InputNames | None = None,
        *,
        cell: tuple[int, int] = (0, -1),
        formula: str = r"\frac{Q K^\top}{\sqrt{d_k}}",
    ) -> Array64:
        """Every score divided by √d_k, with one cell spelled out."""
        keys = keys or queries
        divided = scores / np.sqrt(width)
        result = self.step("Scaled scores", formula, divided, queries, keys, quantity="score")
        i, j = cell
        line = r"\text{(@, @): } \frac{@}{\sqrt{@}} = @"
        self.numbers(line, queries[i], keys[j], scores[i, j], width, result[i, j])
        return result

    def weights(
        self,
        scores: Array64,
        queries: InputNames,
        keys: InputNames | None = None,
        *,
        row: int = 0,
        allowed: Array64 | None = None,
        title: str = "Weights",
        formula: str = r"a_{ij} = \frac{e^{s_{ij}}}{\sum_m e^{s_{im}}}",
    ) -> Array64:
        """The softmax of each row of scores, with one row spelled out.

        With `allowed`, the cells it forbids count as blocked where they really got no weight.
        """
        shares = attention.softmax(scores)
        blocked = None if allowed is None else (allowed == 0) & (shares == 0)
        keys = keys or queries
        self.step(title, formula, shares, queries, keys, quantity="weight", blocked=blocked)
        line = r"a_{\text{@}} = @"
        self.numbers(line, queries[row], latex.softmax(scores[row], shares[row]))
        return shares

    def output(
        self,
        weights: Array64,
        value: Array64,
        queries: InputNames,
        *,
        row: int = 0,
        title: str = "Output",
        formula: str = r"z_i = \sum_j a_{ij}\,v_j,\quad Z = A V",
    ) -> Array64:
        """For each query the sum of the values, each times its weight, with one row spelled out."""
        result = self.step(title, formula, weights @ value, queries, "dim", quantity="output")
        terms = (latex.filled(r"@\,@", *pair) for pair in zip(weights[row], value, strict=True))
        self.numbers(r"z_{\text{@}} = @ = @", queries[row], " + ".join(terms), result[row])
        return result

    def difference(
        self,
        first: Array64,
        second: Array64,
        title: str,
        *axes: AxisNames,
        formula: str = r"\text{first} - \text{second}",
    ) -> None:
        """One result minus another."""
        self.step(title, formula, without_rounding(first - second, first, second), *axes)
        self.largest_difference()

    def largest_difference(self) -> None:
        """The numbers of the step written last, which subtracts."""
        self.numbers(r"\max |\text{difference}| = @", np.abs(self.steps[-1].result).max())


def without_rounding(result: ArrayLike, *terms: Array64) -> Array64:
    """A sum of terms; 0 where it is no more than the rounding of float64 leaves."""
    largest = max(float(np.abs(one).max()) for one in terms)
    return np.where(np.abs(result) <= _ROUNDING * largest, 0.0, result)


ExampleRecipe = Callable[..., None]  # takes a sheet, and the inputs by name


@dataclass(frozen=True, eq=False)
class Example:
    """A worked example: inputs, and the steps its recipe computes from them.

    `name` is a stable slug for links, `section` the section of the notes.
    """

    name: str
    title: str
    section: str
    idea: str
    inputs: tuple[Input, ...]
    recipe: ExampleRecipe = field(repr=False)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The arithmetic from the inputs to the result, with what the notes print for their own inputs.

        Raises ValueError where the inputs do not allow it.
        """
        sheet = Sheet({item.symbol: item.value for item in self.inputs if item.value.ndim == 2})
        self.recipe(sheet, **{item.name: item.argument for item in self.inputs})
        printed = {} if self.changed else printed_steps()
        return tuple(
            replace(step, notes=printed.get((self.name, step.title))) for step in sheet.steps
        )

    @cached_property
    def code(self) -> tuple[Forms, ...]:
        """The code of each step in every style in which it has a form; none where nothing is computed."""
        axes = {step.title: step.result.ndim for step in self.steps}
        return forms_of(self.name, axes, self.inputs)

    @property
    def changed(self) -> bool:
        """Whether any input differs from what the example opened with."""
        return any(item.changed for item in self.inputs)

    def with_inputs(self, **values: ArrayLike) -> "Example":
        """The example worked again with these inputs, the others left as they are.

        What the notes print then no longer applies, unless the inputs are those of the notes.
        Raises ValueError with a plain sentence for an unknown name or a value that does not fit.
        """
        known = {item.name for item in self.inputs}
        for name in values.keys() - known:
            raise ValueError(f"“{self.title}” has no input {name!r}, only {sorted(known)}.")
        inputs = tuple(
            item.with_value(values[item.name]) if item.name in values else item
            for item in self.inputs
        )
        changed = replace(self, inputs=inputs)
        _ = changed.steps  # inputs that fit one by one may still not fit together
        return changed


def worked(
    section: str, title: str, idea: str, *inputs: Input
) -> Callable[[ExampleRecipe], Example]:
    """Decorates a recipe: makes it the worked example with these words and these inputs.

    The example takes its name from the recipe: `the_cat_sat` is "the-cat-sat".
    """

    def example(recipe: ExampleRecipe) -> Example:
        name = recipe.__name__.strip("_").replace("_", "-")
        return Example(name, title, section, idea, inputs, recipe)

    return example
