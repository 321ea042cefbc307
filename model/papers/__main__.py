"""`python -m model.papers MODEL … [-o FILE]`: asks models what papers have found, and writes a report; into a
file that ends with .json, the answers with the hashes of the weights."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from model.papers.claims import PaperResult, claims
from model.system.commands import CommandParser, command
from model.system.files import write_whole

_ABOUT = "Asks models what papers about attention have found, and writes a report in Markdown."


def main(arguments: Sequence[str] | None = None, program: str = "python -m model.papers") -> None:
    """Runs the command; raises SystemExit as `command`. arguments: instead of those of this process. program:
    how the command is called."""
    parser = CommandParser(program, description=_ABOUT)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a name, a hub id or a folder")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="-, or without: the report is printed; .json: answers and hashes",
    )
    parser.add_argument(
        "--claims", nargs="+", metavar="CLAIM", choices=list(claims()), help=", ".join(claims())
    )
    with command(program):
        options = parser.parse_args(arguments)
        file = None if options.output == Path("-") else options.output
    with command(program, kept="" if file is None else f"What was answered is in {file}."):
        _ask(options.models, tuple(options.claims or ()), file)


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
        with redirect_stdout(sys.stderr):  # what libraries print is no part of the report
            opened = load_model(model)
            if is_json:
                hashes[model] = weights_hash(opened)
            for answered in running(opened, names):
                answers[model] = answered.results
                for one in answered.results[-1:]:
                    done = f"{model}: {answered.done} of {answered.total}: {one.title}"
                    print(f"{done}: {one.verdict} ({one.seconds:.1f} s)")
                if output is not None:
                    kept = {name: (hashes[name], answers[name]) for name in hashes}
                    write_whole(output, (as_json(kept) if is_json else report(answers)).encode())
    if output is None:
        print(report(answers), end="")
    else:
        print(f"Wrote {output}.", file=sys.stderr)


if __name__ == "__main__":
    main()
