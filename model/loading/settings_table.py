"""The table of settings in the README. `python -m model.loading.settings_table` writes it."""

from pathlib import Path

from model.loading.marked import put_between, rewrite
from model.system.settings import VARIABLES

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = (
    "<!-- settings: made by `python -m model.loading.settings_table` -->",
    "<!-- settings: end -->",
)


def table() -> str:
    """One row a setting: variable, meaning, default."""
    rows = [f"| `{one.alias}` | {one.description} | {one.title} |" for one in VARIABLES.values()]
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def written(readme: str) -> str:
    """A README with the table in its marked place. Raises ValueError where the marks are missing."""
    return put_between(readme, table(), BEGIN, END)


if __name__ == "__main__":
    rewrite(README, table(), BEGIN, END)
