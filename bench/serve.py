"""The app's own server, with more models: the random ones, from a folder.

`python -m bench.serve FOLDER` where FOLDER holds the models' folders.
"""

import sys
from pathlib import Path

from model.loading import registry


def add_models(folder: Path) -> None:
    """Before any page is loaded: whoever imports the models afterwards finds these too."""
    entries = [
        registry.Entry(file.parent.name, "Random", "decoder", "For measuring.", folder=file.parent)
        for file in sorted(folder.glob("*/config.json"))
    ]
    named = tuple(registry.models.values())
    registry.models = registry.Registry((*named, *entries), tuple(registry.hub_models.values()))


if __name__ == "__main__":
    add_models(Path(sys.argv[1]))
    from streamlit.web import cli

    import viz.server.asgi

    cli.main(["run", viz.server.asgi.__file__], prog_name="streamlit")
