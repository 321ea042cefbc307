"""The way out of this machine, watched by Python's own audit events, whichever library tries."""

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

_NAMED = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}
_REACHED = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_STARTED = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"}


def reach(event: str, arguments: tuple[object, ...]) -> str | None:
    """What an audit event reaches for beyond this process and this machine; None if nothing."""
    if event in _STARTED:
        return f"started {arguments[0]!r}"
    if event in _NAMED:
        host = arguments[_NAMED[event]]
    elif event in _REACHED:
        address = arguments[_REACHED[event]]
        host = address[0] if isinstance(address, tuple) else None  # others stay on this machine
    else:
        return None
    return None if host is None or _is_here(host) else f"{event} {host!r}"


def _is_here(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in {"", "localhost"}:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:  # a name
        return False


def guard(log: Path, *, programs: bool = True) -> Callable[[str, tuple[object, ...]], None]:
    """An audit hook that refuses and writes down what `reach` names; other programs only if `programs`."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        reached = reach(event, arguments) if programs or event not in _STARTED else None
        if reached is not None:
            write(log, reached)
            raise OSError(f"Nothing leaves this machine here: {reached}")

    return hook


def write(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as lines:
        lines.write(line + "\n")
