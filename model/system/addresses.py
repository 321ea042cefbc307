"""Addresses: which of them reach this computer alone, and the origins of pages as a policy names them."""

import re
from ipaddress import ip_address

_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = rf"{_LABEL}(\.{_LABEL})*|\*(\.{_LABEL}){{2,}}"
_ORIGIN = re.compile(rf"'self'|https?://(?P<host>{_HOST})(:(?P<port>[1-9][0-9]{{0,4}}))?", re.ASCII)
_LONGEST_HOST, _HIGHEST_PORT = 253, 65_535
ORIGINS = (
    "origins with spaces between them, each written as https://name, https://name:port, "
    "https://*.name.org for all names below one, or 'self'"
)


def is_loopback(address: str) -> bool:
    """Whether an address reaches this computer alone."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def origins(written: str) -> tuple[str, ...]:
    """The origins of a list with spaces between them, each once, in lower case.

    A semicolon ends a rule of a policy and a new line ends its header. Neither is part of an origin, so an
    origin can add no rule. Raises ValueError for what is no origin.
    """
    found = tuple(dict.fromkeys(filter(None, written.lower().split(" "))))
    for origin in found:
        match = _ORIGIN.fullmatch(origin)
        if match is None or len(match["host"] or "") > _LONGEST_HOST:
            raise ValueError(f"{origin!r} is no origin.")
        if int(match["port"] or 1) > _HIGHEST_PORT:
            raise ValueError(f"{origin!r} names no port.")
    return found
