"""`python -m model.profile MODEL CORPUS.txt -o FOLDER`: what each head of a model does over a text."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from datetime import timedelta

from model.system.extras import needed_by
from model.system.files import printable
from model.system.machine import speak_utf8

with needed_by("A profile"):
    from model.profile.run import WINDOW, RunProgress, profile

_ABOUT = (
    "What each head of a model does over a text. Stop it with Ctrl-C: what was done is kept, and the same "
    "command goes on from there."
)
WIDTH = 72  # letters of the line of progress: a shorter one hides all of a longer one


def main(arguments: Sequence[str] | None = None, program: str = "python -m model.profile") -> int:
    """Runs the command. Returns the exit code: 2 for what cannot be done. arguments: instead of those of this
    process. program: how the command is called."""
    speak_utf8()
    parser = argparse.ArgumentParser(program, description=_ABOUT)
    parser.add_argument("model", help="a name, a hub id or a folder")
    parser.add_argument("corpus", help="a text file in UTF-8")
    parser.add_argument("-o", "--to", required=True, metavar="FOLDER", help="for the profile")
    parser.add_argument("--window", type=int, default=WINDOW, help="most tokens of one pass")
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
    asked = parser.parse_args(arguments)
    try:
        made = profile(
            asked.model,
            asked.corpus,
            asked.to,
            window=asked.window,
            by_line=asked.lines,
            workers=asked.workers,
            cluster=asked.cluster,
            gpus_per_worker=asked.gpus_per_worker,
            most_windows=asked.most_windows,
            told=_tell,
        )
    except ValueError as refusal:
        print(printable(f"\n{refusal}"), file=sys.stderr)
        return 2
    except OSError as error:
        print(f"\n{_in_words(error, asked.to)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            f"\nStopped. What was done is in {asked.to}; the same command goes on.", file=sys.stderr
        )
        return 130
    sums, skipped = made.sums, len(made.about.skipped)
    left_out = f"; {skipped:,} windows could not be read" if skipped else ""
    print(f"\n{sums.windows:,} windows, {sums.tokens:,} tokens{left_out}: {asked.to}")
    print("To look at it, open this folder on the page “Heads”, under “Your corpus”.")
    return 0


def _in_words(error: OSError, to: str) -> str:
    """What the computer refused, and what is left."""
    said = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{said}: {to}. What was saved before is kept; make room, and the same command goes on."
        )
    return f"{said}: {error.filename or to}"


def _tell(progress: RunProgress) -> None:
    left = timedelta(seconds=round(progress.seconds_left))
    done = f"{progress.windows:,} windows, {progress.tokens:,} tokens"
    said = f"{done}: about {progress.share:.0%}, {left} left"
    print(f"\r{said:<{WIDTH}}", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
