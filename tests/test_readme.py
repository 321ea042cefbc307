"""The README tells the truth: what it lists is what there is."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from model.loading.registry import models
from tests.cases import cases
from tools import llms
from tools.tables_of_docs import pages
from viz.state.navigation import PAGES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@cases("page", PAGES)
def test_every_page_is_listed_with_its_line(page) -> None:
    assert f"| {page.title} | {page.line} |" in README


@pytest.mark.parametrize("name", sorted(models))
def test_every_model_is_listed(name: str) -> None:
    assert f"| `{name}` |" in (ROOT / "docs/models.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("picture", re.findall(r"!\[.*?\]\((.*?)\)", README))
def test_every_picture_is_there(picture: str) -> None:
    assert (ROOT / picture).is_file()


def test_every_file_on_the_map_exists() -> None:
    drawing = README.split("## The map of the house")[1].split("```")[1]
    room = ""
    for line in drawing.strip().splitlines():
        indented = line.startswith("  ")
        names = re.match(r"\s*((?:[\w.]+(?:/|\.py) ?)+)", line)
        assert names, line
        for name in names[1].split():
            assert (ROOT / (room if indented else "") / name).exists(), line
        if not indented:
            room = names[1].split()[0]


def test_the_tables_of_models_and_settings_are_the_codes() -> None:
    for file, text in pages().items():
        assert file.read_text(encoding="utf-8") == text, "run python -m tools.tables_of_docs"


def test_the_list_of_pages_for_programs_is_made_from_the_pages_and_has_them_all() -> None:
    assert llms.FILE.read_text(encoding="utf-8") == llms.written(), "run python -m tools.llms"
    listed = {
        page
        for lines in tomllib.loads(llms.LINES.read_text(encoding="utf-8")).values()
        for page in lines
    }
    assert {f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")} <= listed


def test_scripts_are_counted() -> None:
    count = llms.number(llms.scripts())
    assert f"{count} scripts" in README
    guide = (ROOT / "docs/research.md").read_text(encoding="utf-8")
    assert f"{count.capitalize()} tasks" in guide
    assert llms.scripts() == guide.count("```python\n")


def test_the_guide_to_ones_own_model_is_linked_and_on_one_screen() -> None:
    guide = ROOT / "docs" / "add-your-own-model.md"
    assert "(docs/add-your-own-model.md)" in README
    assert len(guide.read_text(encoding="utf-8").splitlines()) < 60


def test_the_fuzzed_inputs_are_those_of_the_report() -> None:
    report = json.loads((ROOT / "docs" / "fuzz.json").read_text(encoding="utf-8"))
    told = (
        f"{report['inputs']:,} inputs so far, {report['answers']:,} answers, "
        f"{report['refusals']:,} clear refusals, no failure"
    )
    assert told in " ".join((ROOT / "docs/serving.md").read_text(encoding="utf-8").split())
    assert report["inputs"] >= 10_000
    assert report["failures"] == []


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 200
