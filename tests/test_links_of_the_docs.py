"""The tables of the docs, the questions of the Library and the search tell the truth: their links open
something, and what they count is there."""

import ast
import json
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from model.worked import errata, examples
from tests.cases import cases
from tools.catalogue import FILE, goals, written
from viz.state.link import from_link
from viz.state.navigation import read_address
from viz.views.glossary.glossary import term
from viz.views.library.questions import questions
from viz.views.worked.by_hand import ERRATA
from viz.views.worked.choice import EXAMPLE, STEP

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
QUOTATIONS = json.loads((ROOT / "tests/model/worked/quotations.json").read_text(encoding="utf-8"))
STEPS = {example.name: example.steps for example in examples()}
LINKS = sorted(
    {*re.findall(r"`(/[a-z_]*(?:\?[^`]*)?)`", COVERAGE), *(goal.to for goal in goals())}
    | {link for question in questions() for link in question.links}
)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    table = COVERAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def views(page: str) -> set[str]:
    """Every text that stands in a page's file, or in the folders of views and the presets that it imports."""
    file = ROOT / "pages" / f"{page}.py"
    source = file.read_text(encoding="utf-8")
    found = re.findall(r"from viz\.views\.(\w+)", source)
    presets = [ROOT / "viz/state/presets.py"] if "viz.state.presets" in source else []
    files = [
        file,
        *presets,
        *(each for name in found for each in (ROOT / "viz/views" / name).glob("*.py")),
    ]
    nodes = (node for each in files for node in ast.walk(ast.parse(each.read_text("utf-8"))))
    written = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return written | {
        text
        for words in (ROOT / "words" / "en").glob("*.toml")
        for section in tomllib.loads(words.read_text("utf-8")).values()
        for text in section.values()
    }


@pytest.mark.slow
@cases("link", LINKS)
def test_a_link_leads_to_a_page_and_says_what_it_can_open(link) -> None:
    opened, parameters = read_address(link)
    page = Path(opened.file).stem
    if page == "worked_examples":
        assert parameters.keys() <= {EXAMPLE, STEP, "show"}
        assert parameters.get("show", ERRATA) in ("Step by step", "Code that fails", ERRATA)
        if EXAMPLE in parameters:
            assert 1 <= int(parameters.get(STEP, 1)) <= len(STEPS[parameters[EXAMPLE]])
    elif page == "library":
        assert "term" not in parameters or term(parameters["term"])
    else:
        view, problems = from_link(parameters)
        assert not problems
        assert not view.show or view.show in views(page)


def test_every_item_has_a_place_or_a_reason_and_a_way_to_try_it_unless_there_is_nothing_yet() -> (
    None
):
    items = [
        row
        for heading in ("Statements about the notes that were false", "Code",
                        "Missing or weak, document by document",
                        "Errors of the notes that had no name", "Provenance")
        for row in rows(heading)
    ]  # fmt: skip
    assert len(items) > 70
    for item, place, *link in items:
        assert item
        assert place
        assert (link and link[0]) or place.startswith("not yet"), item


def test_the_table_of_printed_figures_is_that_of_the_quotations() -> None:
    found = rows("What the notes print, and where")
    assert len(found) == len(QUOTATIONS)
    for (link, source, quotation, verdict), entry in zip(found, QUOTATIONS, strict=True):
        opened = dict(parse_qsl(urlsplit(link.strip("`")).query))
        step = STEPS[opened[EXAMPLE]][int(opened.get(STEP, 1)) - 1]
        assert (opened[EXAMPLE], step.title) == (entry["example"], entry["step"])
        assert source == f"{entry['document']}, {entry['part']}"
        assert quotation.strip("`") in [fragment for fragment, _ in entry["quoted"]]
        assert verdict == {True: "agrees", False: "differs"}[step.agrees]


def test_the_counts_are_right() -> None:
    agreeing = sum(row[-1] == "agrees" for row in rows("What the notes print, and where"))
    of_words = sum(erratum.step is None for erratum in errata())
    counts = [len(QUOTATIONS), agreeing, len(QUOTATIONS) - agreeing, of_words, len(errata())]
    said = COVERAGE.partition("## What the notes print, and where")[2].partition("|")[0]
    assert re.findall(r"\d+", said) == [str(count) for count in counts]


def test_each_question_is_asked_once_and_its_links_have_names() -> None:
    asked = [question.words for question in questions()]
    assert len(asked) > 70
    assert len(set(asked)) == len(asked)
    assert all(words.endswith("?") for words in asked)
    for question in questions():
        assert question.answer.endswith((".", "?", "!")), question
        labels = [link.label for link in question.opens()]
        assert labels
        assert len(set(labels)) == len(labels), labels


def test_the_search_lists_what_is_there_now() -> None:
    """`python -m tools.catalogue` writes the file anew."""
    assert FILE.read_text(encoding="utf-8") == written()
