"""What all commands share: text in UTF-8, one form of message on the standard error, and how they end."""

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from model.system.files import printable

REFUSED, STOPPED, UNREAD = (
    2,
    130,
    141,
)  # exit codes: 128 and the number of the signal, as in a shell


class CommandParser(argparse.ArgumentParser):
    """Refuses a line as a command refuses everything else."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(
            f"{message[:1].upper()}{message[1:]}. “{self.prog} --help” says what it takes."
        )


@contextmanager
def command(name: str, *, kept: str = "") -> Iterator[None]:
    """Runs a command to its end. A refusal is one sentence on the standard error, behind the command's name.

    Args:
        name: how the command is called.
        kept: what a run that Ctrl-C ends has left, in a sentence.

    Raises SystemExit: 2 for a ValueError and what the system refuses, 130 after Ctrl-C, 141 where whoever
    read its output has gone.
    """
    speak_utf8()
    try:
        yield
        sys.stdout.flush()
    except ValueError as refusal:
        _end(name, str(refusal), REFUSED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not told
        sys.exit(UNREAD)
    except OSError as error:
        about = "" if error.filename is None else f"{error.filename}: "
        _end(name, f"{about}{error.strerror or error}.", REFUSED)
    except KeyboardInterrupt:
        _end(name, f"Stopped. {kept}".rstrip(), STOPPED)


def _end(name: str, sentence: str, code: int) -> NoReturn:
    over = "\r\x1b[K" if sys.stderr.isatty() else ""  # a line of progress
    print(f"{over}{printable(f'{name}: {sentence}')}", file=sys.stderr)
    sys.exit(code)


def speak_utf8() -> None:
    """Lets a command write any letter, also where the console's encoding has few, as on Windows: what was
    computed would be lost at its first “é”."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
