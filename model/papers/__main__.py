"""`python -m model.papers MODEL … [-o FILE]`: asks models what papers have found, and writes a report."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from model.papers.claims import PaperResult, claims

_ABOUT = "Asks models what papers about attention have found, and writes a report in Markdown."


def main(arguments: Sequence[str] | None = None, program: str = "python -m model.papers") -> int:
    """Runs the command. Returns the exit code: 2 for what cannot be done. arguments: instead of those of this
    process. program: how the command is called."""
    parser = argparse.ArgumentParser(program, description=_ABOUT)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a name, a hub id or a folder")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="without: the report is printed"
    )
    parser.add_argument(
        "--claims", nargs="+", metavar="CLAIM", choices=list(claims()), help=", ".join(claims())
    )
    options = parser.parse_args(arguments)
    from model.papers.report import report

    try:
        answers = {name: _answers(name, tuple(options.claims or ())) for name in options.models}
        written = report(answers)
        if options.output is None:
            print(written, end="")
        else:
            options.output.write_text(written, encoding="utf-8")
            print(f"Wrote {options.output}.", file=sys.stderr)
    except ValueError as refusal:
        print(f"{program}: {refusal}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{program}: {error.filename or options.output}: {error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


def _answers(name: str, names: tuple[str, ...]) -> tuple[PaperResult, ...]:
    """The answers of one model; a line of a terminal for each."""
    from model.loading.registry import load_model
    from model.papers.asking import running

    results: tuple[PaperResult, ...] = ()
    for answered in running(load_model(name), names):
        results = answered.results
        for one in results[-1:]:
            done = f"{answered.done} of {answered.total}"
            print(
                f"{name}: {done}: {one.title}: {one.verdict} ({one.seconds:.1f} s)", file=sys.stderr
            )
    return results


if __name__ == "__main__":
    sys.exit(main())
