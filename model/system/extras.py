"""The extras of the package: which packages come with each, and the sentence where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

# The extra that brings a package, by the name with which it is imported. pyproject.toml has the same.
EXTRAS = {
    "prometheus_client": "app",
    "segno": "app",
    "streamlit": "app",
    "duckdb": "profile",
    "pyarrow": "profile",
    "gguf": "hub",
    "sentencepiece": "hub",
    "transformers": "hub",
    "anywidget": "notebook",
    "anywidget_mcp": "mcp",
    "mcp": "mcp",
    "ray": "cluster",
    "accelerate": "quantized",
    "bitsandbytes": "quantized",
    "compressed_tensors": "quantized",
}


class MissingExtraError(ImportError, ValueError):  # a refusal is a ValueError, with a sentence
    """A package is missing that comes with an extra; the sentence says which, and how to install it."""

    def __init__(self, what: str, package: str) -> None:
        extra = EXTRAS[package]
        super().__init__(
            f"{what} needs the package {package}, which is not installed: it comes with the extra "
            f'“{extra}”. Install it: pip install "attention-lens[{extra}]".',
            name=package,
        )


def require_extra(what: str, package: str) -> None:
    """Raises MissingExtraError where a package is not installed. what: what needs it, for the sentence."""
    if find_spec(package) is None:
        raise MissingExtraError(what, package)


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Imports inside that miss a package of an extra raise MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtraError(what, package) from error
