"""The type of a slip in the notes."""

from __future__ import annotations

from dataclasses import dataclass

from model.worked.source import Source


@dataclass(frozen=True)
class Slip:
    """One slip: what the notes say, what the arithmetic gives, why, and the example that shows it.

    `source` is where the notes say it; `step` is the title of the step that holds both figures, None
    for a slip of words or code.
    """

    section: str
    source: Source
    notes_say: str
    arithmetic_gives: str
    why: str
    example: str
    step: str | None = None
