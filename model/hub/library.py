"""Whether Hugging Face's library is installed. It is not imported: that takes seconds."""

from functools import cache
from importlib import metadata

OLDEST = "5.22.2"  # that the tests have passed with


@cache  # to read what is installed takes longer than all else of a page
def missing_library() -> str:
    """What is to be installed, so that most models of the hub run; "" where it is."""
    try:
        version = metadata.version("transformers")
    except metadata.PackageNotFoundError:
        return "the package transformers, which is not installed: it comes with the extra “hub”"
    if _parts(version) < _parts(OLDEST):
        return f"transformers {OLDEST} or newer, and {version} is installed"
    return ""


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]
