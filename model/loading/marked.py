"""A part of a page that a command writes, between two marks that stay."""

from pathlib import Path


def put_between(page: str, text: str, begin: str, end: str) -> str:
    """The page with this text between the marks. Raises ValueError where the marks are missing."""
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"The page lacks the marks {begin!r} and {end!r}.")
    return f"{before}{begin}\n{text}\n{end}{after}"


def rewrite(file: Path, text: str, begin: str, end: str) -> None:
    """Puts the text between the marks of a file."""
    page = file.read_text(encoding="utf-8")
    file.write_text(put_between(page, text, begin, end), encoding="utf-8")
