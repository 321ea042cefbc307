"""The type of a slip in the notes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slip:
    """One slip: what the notes say, what the arithmetic gives, why, and the example that shows it.

    `step` is the title of the step that holds both figures; None for a slip of words or code.
    """

    section: str
    notes_say: str
    arithmetic_gives: str
    why: str
    example: str
    step: str | None = None
