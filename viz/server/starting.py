"""Starts the server by Streamlit's command line; a start that fails is refused in one sentence, and one
without room for its output goes on without output."""

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
from streamlit import config
from streamlit.web import cli

from model.system.settings import check_at_start
from viz.notation.words import sentences_of
from viz.server.connections import bound_the_server, raise_limit
from viz.telemetry import logs

say = sentences_of("server.starting")


@contextmanager
def starting() -> Iterator[None]:
    """Raises ValueError, with a sentence, where the body fails before the server is up, and KeyboardInterrupt
    where Ctrl-C ended it. Later failures belong to the log."""
    before = sys.excepthook
    sys.stdout = _Unfailing(sys.stdout)
    try:
        yield
    except click.Abort as ended:
        raise KeyboardInterrupt from ended
    except Exception as error:
        if sys.excepthook is not before:
            raise
        raise ValueError(say("app_cannot_start", reason=_reason(error))) from error


def _reason(error: Exception) -> str:
    """Why a start failed, in one line. The address is added, because the system's message lacks it."""
    told = error.format_message() if isinstance(error, click.ClickException) else str(error)
    said = " ".join(told.split()) or type(error).__name__
    if isinstance(error, OSError | OverflowError) and not isinstance(error, FileNotFoundError):
        address, port = config.get_option("server.address"), config.get_option("server.port")
        said = say("cannot_listen_port", address=address, port=port, said=said)
    return said if said.endswith(".") else f"{said}."


class _Unfailing:
    """Standard output that stays silent after the system has refused a write."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._tried(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        self._tried(self._stream.flush)

    def _tried(self, act: Any) -> Any:
        try:
            return act()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            return None


def run_server(options: Sequence[str] = (), opens: str = "") -> None:
    """Serves the app until a signal ends it.

    options: of Streamlit's command line. opens: what the browser shows first, where there is a display: what
    stands in the app's address behind the first slash.
    """
    gc.disable()  # until the default model is there: a seventh of the time of all imports
    with starting():
        check_at_start()
        # These read the settings: not before they are checked.
        from viz.server import asgi, security
        from viz.shell.streamlit_patches import look_for_no_components

        look_for_no_components()
        raise_limit()
        bound_the_server(partial(security.browser_rules, encrypted=False))
        end_in_time()
        line = ["run", asgi.__file__, *options, "--", opens]
        cli.main(line, prog_name="streamlit", standalone_mode=False)


SECONDS_TO_END = 8.0  # after that the process ends by force: orchestrators wait ten
_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def end_in_time() -> None:
    """After the first signal to end, the process has some seconds to end by itself; then it is ended by
    force. Call this in the main thread. That thread may hang later: Python's C code tells another one of
    the signal."""
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_force, args=(heard,), name="ending", daemon=True).start()


def _force(heard: socket.socket) -> None:
    number = 0
    while number not in _SIGNALS:
        number = heard.recv(1)[0]
    time.sleep(SECONDS_TO_END)
    logs.event("ended by force", seconds=SECONDS_TO_END)
    os._exit(128 + number)
