"""`python -m tools.llms` writes llms.txt, which programs read before the docs.

Its sources are the README, pyproject.toml, the pages themselves, and their lines in tools/llms.toml.
"""

import re
import tomllib
from pathlib import Path

from model.system.files import write_whole

ROOT = Path(__file__).parents[1]
FILE, LINES = ROOT / "llms.txt", ROOT / "tools/llms.toml"
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def written() -> str:
    """The file as it should be. Raises ValueError where the README lacks what is quoted from it."""
    settings = tomllib.loads(_read("pyproject.toml"))
    project, extras = settings["project"], settings["tool"]["attention-lens"]["extras"]
    python = project["requires-python"].removeprefix(">=")
    readme = _read("README.md")
    what, *more = [
        _line(part)
        for part in readme.split("\n## ")[0].split("\n\n")[1:]
        if not part.startswith("!")
    ]
    code = _found(r"```python\n(.+?)```", readme)
    others = _found(r"\n## Not to be confused with\n\n(.+?)\n\n", readme)
    counted = {"scripts": number(scripts()), "models": number(models_of_papers())}
    sections = [
        f"## {heading}\n\n"
        + "".join(
            f"- [{_title(file)}]({file}): {line.format(**counted)}\n"
            for file, line in pages.items()
        )
        for heading, pages in tomllib.loads(LINES.read_text(encoding="utf-8")).items()
    ]
    parts = [
        f"# {project['name']}\n",
        f"> {what}\n",
        *(f"{paragraph}\n" for paragraph in more),
        f"A Python package ({python} or newer, {project['license']}), an app in the browser, a widget for "
        "notebooks, and a server of the Model Context Protocol for chats.\n",
        f"```python\n{code}```\n",
        "Without an extra the package has models, traces, `capture`, analysis and figures. Extras: "
        f"{', '.join(f'`{extra}`' for extra in extras)}.\n",
        f"{_line(others)}\n",
        *sections,
    ]
    return "\n".join(parts)


def scripts() -> int:
    """How many tasks the research guide has, each of which is one script."""
    return len(re.findall(r"^## .*?^```python$", _read("docs/research.md"), re.M | re.S))


def models_of_papers() -> int:
    """How many models the table of papers has a column for."""
    return _found(r"^(\| claim [^\n]*)$", _read("docs/papers.md")).count("|") - 2


def number(count: int) -> str:
    """In a word, as prose has it."""
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def _title(file: str) -> str:
    return _found(r"\A# (.+?)$", _read(file))


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.M | re.S)
    if not found:
        raise ValueError(f"There is no {pattern!r} to be quoted in llms.txt.")
    return found[1]


def _line(text: str) -> str:
    return " ".join(text.split())


def _read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


if __name__ == "__main__":
    write_whole(FILE, written().encode())
