"""`python -m tests.guarded_server LOG` starts the app as `python -m viz.server` does, and guards the way out.

Every reach for another machine, and every other program that is started, is refused and written to LOG,
one line each (tests/way_out.py). Who begins to watch the files of all modules is written there too.
"""

import runpy
import sys
from pathlib import Path

from streamlit.runtime import app_session
from streamlit.runtime.pages_manager import PagesManager

from tests.way_out import guard, write


def note_watchers(log: Path) -> None:
    """Writes down when a session begins to watch the files of all modules."""
    real = app_session.LocalSourcesWatcher

    def noted(pages: PagesManager) -> app_session.LocalSourcesWatcher:
        write(log, "watched the files of all modules")
        return real(pages)

    app_session.LocalSourcesWatcher = noted  # type: ignore[misc, assignment]


if __name__ == "__main__":
    LOG = Path(sys.argv.pop(1))
    note_watchers(LOG)
    sys.addaudithook(guard(LOG))
    runpy.run_module("viz.server", run_name="__main__", alter_sys=True)
