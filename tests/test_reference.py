"""docs/reference.md has every public name, and what its examples say is so."""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from model import load_model
from tools.reference import BOX, LETTERS, REFERENCE, TEXT, PublicName, public_names, reference

OPTIONAL = ("lightning", "xarray")  # packages whose examples run where they are installed
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
NAMES = {one.name: one for one in public_names()}


def failures(one: PublicName) -> list[str]:
    """What the examples of a name print that does not stand there, and what its boxes of code raise."""
    model = load_model("house-gpt")
    home = import_module(one.home) if one.home else None
    public = {name: getattr(home, name) for name in getattr(home, "__all__", ())}
    printed: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    for value in (one.value, *one.members.values()):
        doc = inspect.getdoc(value) or ""
        known = {**public, "model": model, "trace": model.trace(TEXT), "np": np}
        test = doctest.DocTestParser().get_doctest(BOX.sub("", doc), known, one.name, None, 0)
        runner.run(test, out=printed.append)
        for box in BOX.findall(doc):
            try:
                exec(box, {**public, **known})
            except Exception as error:
                if isinstance(error, ImportError) and str(error.name).partition(".")[0] in OPTIONAL:
                    continue
                printed.append(f"{box}{error!r}")
    return printed


def read_in(examples: list[str]) -> Iterator[str]:
    """The attributes and the names that examples use."""
    for example in examples:
        for node in ast.walk(ast.parse(example)):
            if isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Name):
                yield node.id


def test_the_reference_is_that_of_the_docstrings() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference(), "python -m tools.reference"


def test_every_public_name_has_a_docstring_and_an_example() -> None:
    used = {name for one in NAMES.values() for name in read_in(one.examples)}
    for one in NAMES.values():
        assert inspect.getdoc(one.value), one.name
        assert one.examples or inspect.ismodule(one.value), one.name
        for name, member in one.members.items():
            assert inspect.getdoc(member), f"{one.name}.{name}"
            assert name in used, f"{one.name}.{name} is in no example"


def test_a_function_of_several_arguments_says_its_errors_or_its_shapes() -> None:
    """A name in brackets, (query, key), or what is raised."""
    for one in NAMES.values():
        doc = inspect.getdoc(one.value) or ""
        if inspect.isfunction(one.value) and len(inspect.signature(one.value).parameters) > 2:
            assert re.search(r"Raises\s\w+Error|\(\w+( \w+)*,( \w+)?\)|\bas in `", doc), one.name


def test_the_examples_print_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters.txt").write_text(LETTERS, encoding="utf-8")
    printed = {
        name: failures(one) for name, one in NAMES.items() if not inspect.ismodule(one.value)
    }
    assert {name: off for name, off in printed.items() if off} == {}


def test_an_example_that_prints_something_else_fails() -> None:
    def half() -> None:
        """Of one.

        >>> 1 / 2
        0.6
        """

    def nothing() -> None:
        """```python
        1 / 0
        ```
        """

    assert "0.5" in failures(PublicName("", "half", half))[0]
    assert "ZeroDivisionError" in failures(PublicName("", "nothing", nothing))[0]
