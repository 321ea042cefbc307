"""The worked examples: inputs, steps, results, and what the notes print (`DOCUMENTS`)."""

from functools import cache
from importlib import import_module

from model.worked.example import Example, Input, Step
from model.worked.notes import DOCUMENTS, Document, NotesPlace
from model.worked.proofreading import Erratum, all_errata

__all__ = [
    "DOCUMENTS",
    "Document",
    "Erratum",
    "Example",
    "Input",
    "NotesPlace",
    "Step",
    "errata",
    "examples",
]

# The modules with the examples; within a section of the notes the page lists them in this order.
_TOPICS = ("self_attention", "masks", "ladder", "heads", "positions", "layers", "models")


@cache
def examples() -> tuple[Example, ...]:
    """Every worked example, section by section.

    >>> from model.worked import examples
    >>> example = examples()[0]
    >>> example.name, example.steps[0].agrees
    ('the-cat-sat', True)
    """
    modules = [import_module(f"{__name__}.{topic}") for topic in _TOPICS]
    found = [
        item for module in modules for item in vars(module).values() if isinstance(item, Example)
    ]
    return tuple(sorted(found, key=lambda example: int(example.section.removeprefix("§"))))


@cache
def errata() -> tuple[Erratum, ...]:
    """Every erratum found in the notes, in figures, words and code, section by section."""
    return all_errata(examples())
