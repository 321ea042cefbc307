"""The app's own server, with one model more: the random one of GPT-2's size, from a folder.

`python -m tests.bench.serve FOLDER` where FOLDER holds the model's folder.
"""

import sys
from pathlib import Path

from model.loading import registry
from tests.bench import gpt2_size


def add_model(folder: Path) -> None:
    """Before any page is loaded: whoever imports the models afterwards finds one more."""
    entry = registry.Entry(
        gpt2_size.NAME,
        "Random, of GPT-2's size",
        "decoder",
        "For measuring.",
        folder=folder / gpt2_size.NAME,
    )
    named = tuple(registry.models.values())
    registry.models = registry.Registry((*named, entry), tuple(registry.hub_models.values()))


if __name__ == "__main__":
    add_model(Path(sys.argv[1]))
    from streamlit.web import cli

    import viz.server.asgi

    cli.main(["run", viz.server.asgi.__file__], prog_name="streamlit")
