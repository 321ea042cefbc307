"""The table of settings in the README. `python -m model.settings_table` writes it."""

from pathlib import Path

from model.settings import SETTINGS

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- settings: made by `python -m model.settings_table` -->", "<!-- settings: end -->"


def table() -> str:
    """One row a setting: variable, meaning, default."""
    rows = [f"| `{one.variable}` | {one.meaning} | {one.told} |" for one in SETTINGS.values()]
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def written(readme: str) -> str:
    """A README with the table in its marked place. Raises ValueError where the marks are missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{README.name} lacks the marks {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
