"""`python -m model.profile MODEL CORPUS.txt -o FOLDER`: what each head of a model does over a text."""

import errno
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from model.system.commands import CommandParser, command
from model.system.extras import needed_by
from model.system.files import there

if TYPE_CHECKING:
    import argparse

    from model.profile.run import RunProgress

_ABOUT = (
    "What each head of a model does over a text. Stop it with Ctrl-C: what was done is kept, and the same "
    "command goes on from there."
)
WIDTH = 72  # letters of the line of progress: a shorter one hides all of a longer one


def main(arguments: Sequence[str] | None = None, program: str = "python -m model.profile") -> None:
    """Runs the command; raises SystemExit as `command`. arguments: instead of those of this process. program:
    how the command is called."""
    with command(program):
        asked = _parser(program).parse_args(arguments)
        if asked.to == "-":
            raise ValueError("A profile is a folder: -o must name one.")
    with command(program, kept=f"The same command goes on from what is in {asked.to}."):
        _profile(asked)


def _parser(program: str) -> CommandParser:
    parser = CommandParser(program, description=_ABOUT)
    parser.add_argument("model", help="a name, a hub id or a folder")
    parser.add_argument("corpus", help="a text file in UTF-8")
    parser.add_argument("-o", "--to", required=True, metavar="FOLDER", help="for the profile")
    parser.add_argument("--window", type=int, help="most tokens of one pass")
    parser.add_argument("--lines", action="store_true", help="each line is a text of its own")
    parser.add_argument(
        "--workers", type=int, default=0, help="processes; 0: this one, or all that a cluster holds"
    )
    parser.add_argument(
        "--cluster",
        help="of Ray: its address; auto: the one on this machine; local: one of its own",
    )
    parser.add_argument("--gpus-per-worker", type=float, help="of a cluster: 0.5, 1, …")
    parser.add_argument("--most-windows", type=int, help="end after so many")
    return parser


def _profile(asked: "argparse.Namespace") -> None:
    with needed_by("A profile"):
        from model.profile.run import WINDOW, profile
    try:
        made = profile(
            asked.model,
            there(Path(asked.corpus)),
            asked.to,
            window=WINDOW if asked.window is None else asked.window,
            by_line=asked.lines,
            workers=asked.workers,
            cluster=asked.cluster,
            gpus_per_worker=asked.gpus_per_worker,
            most_windows=asked.most_windows,
            told=_tell,
        )
    except OSError as error:
        raise ValueError(_in_words(error, asked.to)) from error
    sums, skipped = made.sums, len(made.about.skipped)
    left_out = f"; {skipped:,} windows could not be read" if skipped else ""
    done = f"{sums.windows:,} windows, {sums.tokens:,} tokens{left_out}: {asked.to}"
    print(f"{done:<{WIDTH}}", file=sys.stderr)
    print(
        "To look at it, open this folder on the page “Heads”, under “Your corpus”.", file=sys.stderr
    )


def _in_words(error: OSError, to: str) -> str:
    """What the computer refused, and what is left."""
    said = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{said}: {to}. What was saved before is kept; make room, and the same command goes on."
        )
    return f"{said}: {error.filename or to}."


def _tell(progress: "RunProgress") -> None:
    left = timedelta(seconds=round(progress.seconds_left))
    done = f"{progress.windows:,} windows, {progress.tokens:,} tokens"
    said = f"{done}: about {progress.share:.0%}, {left} left"
    print(f"{said:<{WIDTH}}", end="\r", flush=True, file=sys.stderr)


if __name__ == "__main__":
    main()
