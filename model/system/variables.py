"""How one environment variable is described: its default, its meaning, and what it must be."""

from typing import Any

from pydantic import Field


def variable(
    name: str, default: object, meaning: str, *, told: str = "", must: str = "", **checks: Any
) -> Any:
    """The field of a variable. told: the default in words; must: what a value must be; checks: of pydantic.
    A default that is a function is called, with the fields above it where it takes an argument."""
    filled: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    told = told or (f"`{default}`" if isinstance(default, str) else str(default))
    if checks.keys() == {"ge", "le"}:
        must = f"a whole number from {checks['ge']:,} to {checks['le']:,}"
    return Field(alias=name, description=meaning, title=told, examples=[must], **filled, **checks)
