"""Ends the process in time when it gets a signal, whatever it is doing."""

import os
import signal
import socket
import threading
import time

from viz.telemetry import logs

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
