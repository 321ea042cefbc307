"""Writes a model as a script, and its weights: `python -m model.code MODEL SENTENCE -o FOLDER`."""

import sys
from pathlib import Path

from model.code.check import checked_difference
from model.code.script import model_script, stem, weights_file
from model.loading.registry import load_model
from model.system.commands import CommandParser, command
from model.system.files import made_folder, write_whole


def main() -> None:
    with command("python -m model.code"):
        _write()


def _write() -> None:
    parser = CommandParser("python -m model.code", description=__doc__)
    parser.add_argument("model", help="a name in the list of models, a hub id, or a folder")
    parser.add_argument("sentence")
    parser.add_argument("-o", "--output", type=Path, default=Path())
    given = parser.parse_args()
    model = load_model(given.model)
    trace = model.trace(given.sentence)
    try:
        named = model.module.named_weights()
        text = model_script(model, trace, named)
        checked_difference(model, trace, named)
    except ValueError as refusal:
        raise ValueError(f"{given.model} cannot be written as code: {refusal}.") from refusal
    script = given.output / f"{stem(model)}.py"
    weights = given.output / f"{stem(model)}.safetensors"
    made_folder(given.output)
    write_whole(script, text.encode())
    write_whole(weights, weights_file(named))
    print(f"Wrote {script} and {weights}.", file=sys.stderr)


if __name__ == "__main__":
    main()
