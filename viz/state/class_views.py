"""What lecturers show their classes: a view each, under a code that nobody can guess.

Nothing is in here but what somebody has chosen to show. It is bounded in number and in time, lives in this
process only, and ends with it. Who begins many closes it for nobody.
"""

import secrets
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from model.system.fair_queue import first_to_go
from viz.notation.words import sentences_of
from viz.state.link import LINK_BYTES

say = sentences_of("state.class_views")

# Parameters of a link: the code of a class, and behind a dot the number of the view that it opens; and for
# whoever leads it, the code and behind a dot the key.
JOIN, LEAD = "class", "lead"
CLASSES = 200  # that are shown something at once
HOURS = 4.0  # after the last view that was shown
STILL_SECONDS = (
    120.0  # without a look of a pupil, after which a class makes room where all are taken
)
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none looks like another
_LENGTH = 12  # letters of a code: 8e17 codes

FULL = say("server_many_classes")
ENDED = say("class_ended_ask")


@dataclass(frozen=True)
class ShownView:
    """A page with its parameters, and how often the class was shown something before."""

    page: str  # its file
    parameters: Mapping[str, str]
    number: int
    until: float  # of the clock


@dataclass
class _Class:
    """One class, and when it was last in use. is_begun: nobody has joined, and nothing more was shown."""

    visitor: Hashable
    key: str
    view: ShownView
    used: float  # of the clock
    is_begun: bool = True


class ClassViews:
    """All classes of this process. clock: seconds that only grow. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._classes: dict[str, _Class] = {}  # the one that was used last stands last
        self._changing = threading.Lock()

    def begin(
        self, page: str, parameters: Mapping[str, str], visitor: Hashable = None
    ) -> tuple[str, str]:
        """A code for the class, and the key with which its lecturer shows more.

        Where all are taken, one of the visitor who has the most makes room, if that is more than one; else
        the oldest of those that were only begun; else the one that is not in use for longest. Raises
        ValueError where all are in use, and where a link is too long.
        """
        view = self._view(page, parameters, 0)
        code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        key = secrets.token_urlsafe(16)
        with self._changing:
            self._forget()
            if len(self._classes) >= CLASSES:
                del self._classes[self._first_to_go()]
            self._classes[code] = _Class(visitor, key, view, self._clock())
            return code, key

    def show(self, code: str, key: str, page: str, parameters: Mapping[str, str]) -> None:
        """Shows the class another view. Raises ValueError where it has ended, the key is not its own, or a
        link is too long."""
        with self._changing:
            self._forget()
            if not self._opens(code, key):
                raise ValueError(ENDED)
            known = self._classes[code]
            known.view = self._view(page, parameters, known.view.number + 1)
            self._use(code)

    def leads(self, code: str, key: str) -> bool:
        """Whether a class goes on, and this is the key of its lecturer."""
        with self._changing:
            self._forget()
            return self._opens(code, key)

    def shown(self, code: str) -> ShownView | None:
        """What a class is shown now; None where there is no such class, or no longer."""
        with self._changing:
            self._forget()
            return self._classes[code].view if code in self._classes else None

    def look(self, code: str) -> ShownView | None:
        """The same, for a pupil, who so joins the class."""
        view = self.shown(code)
        with self._changing:
            if code in self._classes:
                self._use(code)
        return view

    def end(self, code: str, key: str) -> None:
        """Ends a class, if the key is its own."""
        with self._changing:
            if self._opens(code, key):
                del self._classes[code]

    def _use(self, code: str) -> None:
        known = self._classes[code] = self._classes.pop(code)
        known.used, known.is_begun = self._clock(), False

    def _first_to_go(self) -> str:
        """The class that makes room for another one. Raises ValueError where none does."""
        visitors = {code: one.visitor for code, one in self._classes.items()}
        code = first_to_go(visitors)
        if visitors[code] is not None and [*visitors.values()].count(visitors[code]) > 1:
            return code
        if begun := [code for code, one in self._classes.items() if one.is_begun]:
            return begun[0]
        if self._clock() - self._classes[code].used < STILL_SECONDS:
            raise ValueError(FULL)
        return code

    def _opens(self, code: str, key: str) -> bool:
        known = self._classes.get(code)
        return known is not None and secrets.compare_digest(known.key.encode(), key.encode())

    def _view(self, page: str, parameters: Mapping[str, str], number: int) -> ShownView:
        if len(urlencode(parameters)) > LINK_BYTES:
            raise ValueError("This view does not fit into a link: its sentence is too long.")
        return ShownView(page, dict(parameters), number, self._clock() + HOURS * 3600)

    def _forget(self) -> None:
        """Classes whose time is over go."""
        now = self._clock()
        self._classes = {code: one for code, one in self._classes.items() if one.view.until > now}


class_views = ClassViews()
