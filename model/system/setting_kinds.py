"""What a setting can be, and the defaults that follow from this machine and from other settings."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, HttpUrl

from model.system.addresses import is_loopback, origins
from model.system.machine import machine_bytes

ADDRESS = "STREAMLIT_SERVER_ADDRESS"
MEGABYTE = 1_000_000
REAL_MODEL = "smollm2-135m-instruct"  # a language model of a hundred megabytes
LEAST_TRACE_MB, MOST_TRACE_MB = 300, 2000
OPEN_HERE = "`on` for visitors on this computer who do not come through a proxy, otherwise `off`"

Precision = Literal["float32", "bfloat16", "float16"]
Switch = Annotated[bool, BeforeValidator({"on": True, "off": False}.get)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[
    tuple[Name, ...], BeforeValidator(lambda written: [name.strip() for name in written.split(",")])
]
Origins = Annotated[tuple[str, ...], BeforeValidator(origins)]
Named = Annotated[
    str | None, BeforeValidator(lambda written: None if written == "none" else written)
]
Address = Annotated[str, AfterValidator(lambda written: HttpUrl(written) and written.rstrip("/"))]


def asked_at_this_computer(above: Mapping[str, Any]) -> bool:
    return above["asked_here"] and is_loopback(above["address"])


def fetched_by_default(above: Mapping[str, Any]) -> str | None:
    """The real language model, where it may be opened anyway."""
    listed = above["models"]
    may_open = asked_at_this_computer(above) if listed is None else REAL_MODEL in listed
    return REAL_MODEL if may_open and is_loopback(above["address"]) else None


def default_trace_megabytes() -> int:
    """A tenth of the machine's memory. A trace of 1,024 tokens of a GPT-2 takes 440 MB, and an intervention
    is shown beside the unchanged run, so two of them are kept."""
    return min(max(machine_bytes() // MEGABYTE // 10, LEAST_TRACE_MB), MOST_TRACE_MB)


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
