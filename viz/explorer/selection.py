"""The chosen cell: whether the page's choice counts or the reader's own, which the browser reports."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

import streamlit as st

from viz.notation.formulas import StageName

STAGES: tuple[str, ...] = get_args(StageName)


@dataclass(frozen=True)
class Selection:
    """One cell: a head, a stage, a query token and a key token. All count from 0."""

    head: int = 0
    stage: str = "weights"
    query: int = 0
    key: int = 0

    def clamped(self, *, heads: int, queries: int, keys: int) -> "Selection":
        """The nearest selection that exists; an unknown stage becomes the weights."""
        return Selection(
            head=_within(self.head, heads),
            stage=self.stage if self.stage in STAGES else "weights",
            query=_within(self.query, queries),
            key=_within(self.key, keys),
        )


@dataclass(frozen=True)
class Choice:
    """What one explorer's page, this module and the browser last told each other."""

    passed: Selection  # by the page, as it was
    returned: Selection  # to the page: what is chosen now
    sent: Selection  # to the browser
    revision: int  # grows whenever the page sends the reader somewhere else

    def moves(self, passed: Selection, reported: Selection | None) -> bool:
        """Whether the page sends the reader somewhere else: it passes what nobody has said before, or
        the browser has lost the choice because it mounted the explorer anew."""
        lost = reported is None and self.returned != self.sent
        return lost or passed not in {self.passed, self.returned, reported}


def choose(passed: Selection, mount: str, **sizes: int) -> Choice:
    """The choice that counts now, kept for the next run: the page's where it moves the reader, else the
    reader's own. sizes: how many heads, queries and keys there are."""
    before: Choice | None = st.session_state.get(_choice_key(mount))
    reported = None if before is None else _reported(mount, before.revision)
    if before is None or before.moves(passed, reported):
        start = passed.clamped(**sizes)
        choice = Choice(passed, returned=start, sent=start, revision=_next_revision(mount))
    else:
        chosen = (reported or before.sent).clamped(**sizes)
        choice = replace(before, passed=passed, returned=chosen)
    st.session_state[_choice_key(mount)] = choice
    return choice


def forget(mount: str = "explorer") -> None:
    """Lets the page's next selection count in any case, for instance when an example is opened again."""
    st.session_state.pop(_choice_key(mount), None)


def _reported(mount: str, revision: int) -> Selection | None:
    """What the browser reported under this revision; None if nothing readable."""
    state = st.session_state.get(mount)
    report = state.get("selection") if isinstance(state, Mapping) else None
    if not isinstance(report, Mapping) or report.get("revision") != revision:
        return None
    numbers = [report.get(name) for name in ("head", "query", "key")]
    head, query, key = (number if isinstance(number, int) else 0 for number in numbers)
    return Selection(head=head, stage=str(report.get("stage")), query=query, key=key)


def _next_revision(mount: str) -> int:
    key = f"{mount}:revision"
    revision: int = st.session_state.get(key, -1) + 1
    st.session_state[key] = revision
    return revision


def _choice_key(mount: str) -> str:
    return f"{mount}:choice"


def _within(number: int, count: int) -> int:
    return min(max(number, 0), max(count - 1, 0))
