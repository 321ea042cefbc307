"""Writes the small pictures of the examples' heads: `python -m tools.thumbnails`, after a new example."""

import json

from model import load_model
from model.system.files import write_whole
from viz.figures.svg import rows_of
from viz.state.presets import EXAMPLES
from viz.views.examples.cards import FILE


def main() -> None:
    models = {name: load_model(name, device="cpu") for name in {one.view.model for one in EXAMPLES}}
    rows = {
        example.title: rows_of(
            models[view.model].trace(view.text).find(view.place).weights(view.head)
        )
        for example in EXAMPLES
        for view in [example.view]
    }
    write_whole(FILE, (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
