"""`python -m model.papers MODEL … [-o FILE]`: asks models what papers have found, and writes a report; into a
file that ends with .json, the answers with the hashes of the weights."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from model.papers.claims import PaperResult, claims
from model.system.files import printable, write_whole
from model.system.machine import speak_utf8

_ABOUT = "Asks models what papers about attention have found, and writes a report in Markdown."


def main(arguments: Sequence[str] | None = None, program: str = "python -m model.papers") -> int:
    """Runs the command. Returns the exit code: 2 for what cannot be done. arguments: instead of those of this
    process. program: how the command is called."""
    speak_utf8()
    parser = argparse.ArgumentParser(program, description=_ABOUT)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a name, a hub id or a folder")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="without: the report is printed; .json: answers and hashes",
    )
    parser.add_argument(
        "--claims", nargs="+", metavar="CLAIM", choices=list(claims()), help=", ".join(claims())
    )
    options = parser.parse_args(arguments)
    try:
        _ask(options.models, tuple(options.claims or ()), options.output)
    except ValueError as refusal:
        print(printable(f"{program}: {refusal}"), file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{program}: {options.output or error.filename}: {error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = "" if options.output is None else f" What was answered is in {options.output}."
        print(f"\nStopped.{kept}", file=sys.stderr)
        return 130
    return 0


def _ask(models: Sequence[str], names: tuple[str, ...], output: Path | None) -> None:
    """Asks one model after another; a line of a terminal for each answer. A file has what is known so far."""
    from model.loading.registry import load_model
    from model.papers.asking import running
    from model.papers.report import report
    from model.papers.stored import as_json
    from model.run.weights_hash import weights_hash

    is_json = output is not None and output.suffix == ".json"
    answers: dict[str, tuple[PaperResult, ...]] = {}
    hashes: dict[str, str] = {}
    for model in models:
        opened = load_model(model)
        if is_json:
            hashes[model] = weights_hash(opened)
        for answered in running(opened, names):
            answers[model] = answered.results
            for one in answered.results[-1:]:
                done = f"{model}: {answered.done} of {answered.total}: {one.title}"
                print(f"{done}: {one.verdict} ({one.seconds:.1f} s)", file=sys.stderr)
            if output is not None:
                kept = {name: (hashes[name], answers[name]) for name in hashes}
                write_whole(output, (as_json(kept) if is_json else report(answers)).encode())
    if output is None:
        print(report(answers), end="")
    else:
        print(f"Wrote {output}.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
