"""Whether requirements*.lock hold what requirements*.txt and the packages themselves ask for.

`make lock` makes the lock files. Here they are held, without a network, against what the installed packages
say they need, for each system and Python that the app runs on.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

SETTINGS = tomllib.loads((Path(__file__).parents[2] / "deploy" / "lock.toml").read_text())
NOT_LOCKED = {
    package["name"]: package["requires-dist"] for package in SETTINGS["dependency-metadata"]
}
LINUX = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"}
MAC = {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin"}
WINDOWS = {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows"}
ENVIRONMENTS = [
    system
    | {
        "platform_machine": machine,
        "python_version": version,
        "python_full_version": f"{version}.0",
    }
    for system, machine in [
        (LINUX, "x86_64"),
        (LINUX, "aarch64"),
        (MAC, "arm64"),
        (WINDOWS, "AMD64"),
    ]
    for version in ("3.11", "3.12", "3.13", "3.14")
]
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})(?=\s|$)")


class Pin(NamedTuple):
    """A locked package: name, version and marker, and the hashes of the files that may be installed."""

    requirement: Requirement
    hashes: frozenset[str]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")


def holds(requirement: Requirement, environment: dict[str, str], extra: str = "") -> bool:
    """Whether a requirement's condition is met; in an environment that names nothing, the one here."""
    marker = requirement.marker
    return marker is None or marker.evaluate({**environment, "extra": extra})


def requirements(file: Path) -> list[Requirement]:
    """The lines of a requirements file, and of those it takes in by -r."""
    lines = [line.split("#")[0].strip() for line in file.read_text().splitlines()]
    taken_in = [line.split()[1] for line in lines if line.startswith("-r ")]
    own = [Requirement(line) for line in lines if line and not line.startswith("-r ")]
    return own + [line for name in taken_in for line in requirements(file.parent / name)]


def locked(text: str) -> list[Pin]:
    """The packages of a lock file. Raises ValueError where one lacks its exact version or a hash."""
    lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
    pins = [
        Pin(Requirement(_HASH.sub("", line)), frozenset(_HASH.findall(line)))
        for line in lines
        if line and not line.startswith("#")
    ]
    loose = [
        pin.name for pin in pins if not pin.hashes or not re.fullmatch(r"[\w.!+]+", pin.version)
    ]
    if loose:
        raise ValueError(f"No exact version or no hash: {', '.join(loose)}.")
    return pins


@cache
def needs(name: str) -> list[Requirement]:
    """What a package says it needs. One that only another system needs is not installed: it says nothing."""
    try:
        said = NOT_LOCKED.get(name) or metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    return [Requirement(line) for line in said]


def asked(
    wanted: Iterable[Requirement], environment: dict[str, str]
) -> Iterator[tuple[str, Requirement]]:
    """Each requirement that holds in an environment, direct or of a package, with the name of who asks."""
    waiting = [("the project", line) for line in wanted if holds(line, environment)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        who, requirement = waiting.pop()
        yield who, requirement
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            waiting += [(name, line) for line in needs(name) if holds(line, environment, extra)]


def problems(wanted: list[Requirement], pins: list[Pin]) -> list[str]:
    """What a lock file lacks, has in a wrong version or has without need, in any environment."""
    found = [
        problem
        for environment in ENVIRONMENTS
        for problem in _problems_in(environment, wanted, pins)
    ]
    return list(dict.fromkeys(found))


def _problems_in(
    environment: dict[str, str], wanted: list[Requirement], pins: list[Pin]
) -> Iterator[str]:
    where = f"on {environment['sys_platform']} with Python {environment['python_version']}"
    held = [pin for pin in pins if holds(pin.requirement, environment)]
    given = {pin.name: pin for pin in held}
    if len(given) < len(held):
        yield f"A package is locked twice {where}."
    reached = set(NOT_LOCKED)
    for who, requirement in asked(wanted, environment):
        name = canonicalize_name(requirement.name)
        reached.add(name)
        if name in NOT_LOCKED:
            continue
        if name not in given:
            yield f"{who} needs {name}, which is not locked {where}."
        elif not requirement.specifier.contains(given[name].version, prereleases=True):
            yield f"{who} needs {requirement}, but {given[name].version} is locked."
    yield from (
        f"{name} is locked, but nothing needs it {where}."
        for name in sorted(given.keys() - reached)
    )


def otherwise_installed(pins: list[Pin]) -> list[str]:
    """The locked packages of this system and Python that are missing here or have another version."""
    return [pin.name for pin in pins if holds(pin.requirement, {}) and not _is_installed(pin)]


def _is_installed(pin: Pin) -> bool:
    try:
        return Version(metadata.version(pin.name)) == Version(pin.version)
    except metadata.PackageNotFoundError:
        return False
