"""What lecturers show their classes: a view each, under a code that nobody can guess.

Nothing is in here but what somebody has chosen to show. It is bounded in number and in time, lives in this
process only, and ends with it.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from viz.state.link import LINK_BYTES

CLASSES = 200  # that are shown something at once
HOURS = 4.0  # after the last view that was shown
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none looks like another
_LENGTH = 12  # letters of a code: 8e17 codes

ENDED = "This class has ended. Ask your lecturer for a new link."


@dataclass(frozen=True)
class ShownView:
    """A page with its parameters, and how often the class was shown something before."""

    page: str  # its file
    parameters: Mapping[str, str]
    number: int
    until: float  # of the clock


class ClassViews:
    """All classes of this process. clock: seconds that only grow. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: OrderedDict[str, ShownView] = OrderedDict()  # looked at last stands last
        self._keys: dict[str, str] = {}
        self._changing = threading.Lock()

    def begin(self, page: str, parameters: Mapping[str, str]) -> tuple[str, str]:
        """A code for the class, and the key with which its lecturer shows more. The class that nobody has
        looked at for longest makes room. Raises ValueError where a link is too long."""
        view = self._view(page, parameters, 0)
        code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        with self._changing:
            self._forget()
            while len(self._shown) >= CLASSES:
                oldest, _ = self._shown.popitem(last=False)
                del self._keys[oldest]
            self._shown[code], self._keys[code] = view, secrets.token_urlsafe(16)
            return code, self._keys[code]

    def show(self, code: str, key: str, page: str, parameters: Mapping[str, str]) -> None:
        """Shows the class another view. Raises ValueError where it has ended, the key is not its own, or a
        link is too long."""
        with self._changing:
            self._forget()
            if not self._opens(code, key):
                raise ValueError(ENDED)
            self._shown[code] = self._view(page, parameters, self._shown[code].number + 1)

    def look(self, code: str) -> ShownView | None:
        """What a class is shown now; None where there is no such class, or no longer."""
        with self._changing:
            self._forget()
            if code in self._shown:
                self._shown.move_to_end(code)
            return self._shown.get(code)

    def end(self, code: str, key: str) -> None:
        """Ends a class, if the key is its own."""
        with self._changing:
            if self._opens(code, key):
                del self._shown[code], self._keys[code]

    def _opens(self, code: str, key: str) -> bool:
        return code in self._keys and secrets.compare_digest(
            self._keys[code].encode(), key.encode()
        )

    def _view(self, page: str, parameters: Mapping[str, str], number: int) -> ShownView:
        if len(urlencode(parameters)) > LINK_BYTES:
            raise ValueError("This view does not fit into a link: its sentence is too long.")
        return ShownView(page, dict(parameters), number, self._clock() + HOURS * 3600)

    def _forget(self) -> None:
        """Classes whose time is over go."""
        over = [code for code, view in self._shown.items() if view.until <= self._clock()]
        for code in over:
            del self._shown[code], self._keys[code]


class_views = ClassViews()
