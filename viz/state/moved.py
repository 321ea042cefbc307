"""Where the views of earlier versions are now, so that a link of any version opens what it was made for."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

NewAddress = tuple[str, dict[str, str]]  # the path, without its slash, and the parameters


@cache
def moved() -> Mapping[tuple[str, str], NewAddress]:
    """(path, view) of what has moved -> the address that opens it. A view "" stands for all others."""
    written: dict[str, str] = tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    )
    return {
        (_read(old)[0], _read(old)[1].get("show", "")): _read(new) for old, new in written.items()
    }


def _read(address: str) -> NewAddress:
    parts = urlsplit(address)
    return parts.path.strip("/"), dict(parse_qsl(parts.query))


def new_address(path: str, parameters: Mapping[str, str]) -> NewAddress | None:
    """Where an address leads that an earlier version wrote; None where it leads still where it did.

    What it says beside the view is kept, unless the new address says it too. path: without a slash.
    """
    table = moved()
    found = table.get((path, parameters.get("show", ""))) or table.get((path, ""))
    if found is None:
        return None
    others = {name: value for name, value in parameters.items() if name != "show"}
    return found[0], others | found[1]


def gone() -> tuple[str, ...]:
    """The paths of pages of earlier versions that have ended."""
    return tuple(path for path, view in moved() if not view)
