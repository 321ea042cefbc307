"""The words of pages: sentences by key, whose slots know how tokens, numbers and counts are written."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.system.words import Words
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted, difference, fixed, number, signed

FORMATS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "token": bold_token,
        "plain": plain,
        "number": number,
        "difference": difference,
        "count": counted,  # "count token": "1 token", "2 tokens"
        "fixed": lambda value, decimals: fixed(value, int(decimals)),  # "fixed 2"
        "signed": lambda value, form: signed(format(value, form)),  # "signed .2f"
    }
)


def sentences_of(section: str) -> Words:
    """The sentences of a section of words/en, "file.section"."""
    return Words(section, FORMATS)
