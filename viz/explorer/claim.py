"""A sentence beside the picture whose words lead to what they name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ring:
    """A cell, a whole row (no key), a whole column (no query), or the cells so many columns beside the
    diagonal."""

    query: int | None = None
    key: int | None = None
    diagonal: int | None = None


@dataclass(frozen=True)
class Words:
    """Some words. With `rings` they are a link that rings these once; with `place` or `head`, one that opens
    that layer or head."""

    text: str
    rings: tuple[Ring, ...] = ()
    place: str | None = None
    head: int | None = None


@dataclass(frozen=True)
class Claim:
    """What is to be seen in one head of a run."""

    place: str
    head: int
    title: str
    words: tuple[Words, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.words)
