"""A Dockerfile as a list of instructions, and the files that `COPY . .` would take."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its word in capitals, and the rest as it is written on one line."""

    word: str
    rest: str

    @property
    def command(self) -> list[str]:
        """The program and its arguments, of the JSON form; of the other form, a shell's."""
        written = self.rest.removeprefix("CMD").strip() if self.word == "HEALTHCHECK" else self.rest
        return json.loads(written) if written.startswith("[") else ["/bin/sh", "-c", written]

    def filled(self, values: Mapping[str, str]) -> str:
        """The rest with ${NAME} replaced, as Docker does outside RUN."""
        return _VARIABLE.sub(lambda found: values.get(found[1], ""), self.rest)


def instructions(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile. Options of HEALTHCHECK are left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = (line.strip().split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [_instruction(word.upper(), rest) for word, rest in found]


def _instruction(word: str, rest: str) -> Instruction:
    if word == "HEALTHCHECK":
        rest = re.sub(r"--\S+\s+", "", rest)
    return Instruction(word, rest.strip())


def context(root: Path, ignored: str) -> Iterator[Path]:
    """The files of a folder that its .dockerignore leaves in. Its last fitting line counts."""
    rules = [line.strip() for line in ignored.splitlines()]
    rules = [line for line in rules if line and not line.startswith("#")]
    asked_for = {rule[1:].split("/")[0] for rule in rules if rule.startswith("!")}
    for place, folders, files in os.walk(root):
        here = Path(place).relative_to(root)
        if not here.parts:  # an environment beside the code has a hundred thousand files
            left_out = {name for name in folders if _left_out(Path(name), rules)}
            folders[:] = sorted(set(folders) - left_out | asked_for & left_out)
        yield from (root / here / name for name in files if not _left_out(here / name, rules))


def _left_out(path: Path, rules: list[str]) -> bool:
    out = False
    for rule in rules:
        if any(_fits(place, rule.removeprefix("!")) for place in (path, *path.parents)):
            out = not rule.startswith("!")
    return out


def _fits(place: Path, rule: str) -> bool:
    if rule.startswith("**/"):
        return any(fnmatchcase(part, rule[3:]) for part in place.parts)
    written = rule.split("/")
    same_depth = len(written) == len(place.parts)
    return same_depth and all(map(fnmatchcase, place.parts, written))
