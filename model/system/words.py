"""Every sentence that a reader sees, by key, in words/en/*.toml.

A slot is `{$name}`, or `{$name:.2f}` with the format of its value: Python's own, or one that `formats` names.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

LANGUAGE = "en"
FOLDER = Path(__file__).parents[2] / "words" / LANGUAGE
SLOT = re.compile(r"\{\$(\w+)(?::([^{}]*))?\}")
PLAINLY: Mapping[str, Callable[..., str]] = MappingProxyType({})


@cache
def file_of_words(name: str) -> dict[str, dict[str, str]]:
    """The sections of a file of words: in each, sentences by key."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


class Words:
    """The sentences of one section, "file.section"; the file is read when the first is asked for.

    formats: by name, what writes a value; with more than its name in a slot, it is given the rest too.
    """

    def __init__(self, section: str, formats: Mapping[str, Callable[..., str]] = PLAINLY) -> None:
        self.file, _, self.section = section.partition(".")
        self.formats = formats

    def __call__(self, key: str, /, **slots: object) -> str:
        """The sentence of a key, with a value in each slot. KeyError: there is no such key, or a slot has no
        value."""
        text = file_of_words(self.file)[self.section][key]
        return (
            SLOT.sub(lambda slot: self._written(slots[slot[1]], slot[2]), text) if slots else text
        )

    def _written(self, value: object, form: str | None) -> str:
        name, _, more = (form or "").partition(" ")
        if (write := self.formats.get(name)) is not None:
            return write(value, more) if more else write(value)
        return format(value, form or "")
