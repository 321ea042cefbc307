"""The table of settings in the README. `python -m model.settings_table` writes it."""

from pathlib import Path

from model.marked import put_between, rewrite
from model.settings import SETTINGS

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- settings: made by `python -m model.settings_table` -->", "<!-- settings: end -->"


def table() -> str:
    """One row a setting: variable, meaning, default."""
    rows = [f"| `{one.variable}` | {one.meaning} | {one.told} |" for one in SETTINGS.values()]
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def written(readme: str) -> str:
    """A README with the table in its marked place. Raises ValueError where the marks are missing."""
    return put_between(readme, table(), BEGIN, END)


if __name__ == "__main__":
    rewrite(README, table(), BEGIN, END)
