"""A worked example: words, inputs, and a recipe that works it on a sheet."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from numpy.typing import ArrayLike

from model.arithmetic import Array
from model.worked.code import Forms, forms_of
from model.worked.inputs import Input, Labels, given, numbered, read_only, token_ids, whole
from model.worked.printed import printed_steps
from model.worked.sheet import Sheet, Step

__all__ = [
    "Array",
    "Example",
    "Input",
    "Labels",
    "Sheet",
    "Step",
    "given",
    "numbered",
    "read_only",
    "token_ids",
    "whole",
    "worked",
]

Recipe = Callable[..., None]  # takes a sheet, and the inputs by name


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
    recipe: Recipe = field(repr=False)

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


def worked(section: str, title: str, idea: str, *inputs: Input) -> Callable[[Recipe], Example]:
    """Decorates a recipe: makes it the worked example with these words and these inputs.

    The example takes its name from the recipe: `the_cat_sat` is "the-cat-sat".
    """

    def example(recipe: Recipe) -> Example:
        name = recipe.__name__.strip("_").replace("_", "-")
        return Example(name, title, section, idea, inputs, recipe)

    return example
