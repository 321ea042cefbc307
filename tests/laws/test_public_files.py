"""What a stranger meets first agrees with the code: the citation, the forms of issues, the workflows."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = sorted((ROOT / ".github").rglob("*.yml"))
FORMS = [file for file in FILES if file.parent.name == "ISSUE_TEMPLATE" and file.stem != "config"]
WORKFLOWS = [file for file in FILES if file.parent.name == "workflows"]
MAKE = re.compile(r"\bmake +([a-z][\w-]*)")
GOALS = set(re.findall(r"^([a-z][\w-]*)(?: [a-z][\w-]*)*:", (ROOT / "Makefile").read_text(), re.M))
ASKED = {"input", "textarea", "dropdown", "checkboxes"}  # kinds of fields that GitHub has


def read(file: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")))


def commands(workflow: dict[Any, Any]) -> str:
    jobs = workflow["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_the_citation_is_of_this_package() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "type", "authors"} <= citation.keys()
    assert citation["type"] == "software"
    for key, field in [("title", "name"), ("version",) * 2, ("license",) * 2, ("keywords",) * 2]:
        assert citation[key] == PROJECT[field], key
    assert citation["authors"] == PROJECT["authors"]
    released = re.search(
        rf"^## {re.escape(PROJECT['version'])} \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert released
    assert str(citation["date-released"]) == released[1]


def test_every_file_for_the_host_is_read_as_yaml(subtests: pytest.Subtests) -> None:
    assert len(FORMS) >= 4
    assert len(WORKFLOWS) >= 3
    for file in FILES:
        with subtests.test(file=file.name):
            assert read(file)


def test_a_form_has_fields_that_the_host_knows(subtests: pytest.Subtests) -> None:
    forms = {file.name: read(file) for file in FORMS}
    assert len({form["name"] for form in forms.values()}) == len(forms)
    for name, form in forms.items():
        with subtests.test(form=name):
            assert {"name", "description", "body"} <= form.keys()
            assert form.keys() <= {"name", "description", "title", "labels", "body"}
            assert {field["type"] for field in form["body"]} <= {*ASKED, "markdown"}
            fields = [field for field in form["body"] if field["type"] in ASKED]
            for each in ([field["id"] for field in fields], labels(fields)):
                assert len(set(each)) == len(each)
                assert all(each)
            for field in fields:
                assert re.fullmatch(r"[\w-]+", field["id"])
                listed = field["type"] in ("dropdown", "checkboxes")
                assert bool(field["attributes"].get("options")) is listed


def labels(fields: list[dict[str, Any]]) -> list[str]:
    return [field["attributes"]["label"] for field in fields]


def test_a_form_of_a_fault_asks_what_is_needed_to_repeat_it(subtests: pytest.Subtests) -> None:
    faults = [form for file in FORMS if "bug" in (form := read(file))["labels"]]
    assert len(faults) >= 3
    for form in faults:
        with subtests.test(form=form["name"]):
            fields = {field["id"]: field for field in form["body"] if field["type"] in ASKED}
            assert {"address", "model", "text", "version"} <= fields.keys()
            assert fields["version"]["validations"]["required"]
            assert "attention-lens --version" in fields["version"]["attributes"]["description"]
    assert "check" in {field.get("id") for form in faults for field in form["body"]}


def test_every_goal_of_make_that_a_workflow_asks_for_exists(subtests: pytest.Subtests) -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    for name, text in [("run", script), *((f.name, commands(read(f))) for f in WORKFLOWS)]:
        with subtests.test(file=name):
            asked = set(MAKE.findall(text))
            assert asked or ".ci/run" in text
            assert asked <= GOALS


def test_a_first_task_says_why_where_how_it_is_tested_and_what_it_is_like(
    subtests: pytest.Subtests,
) -> None:
    sizes = re.split(r"^## (.*)$", (ROOT / "docs/first-tasks.md").read_text("utf-8"), flags=re.M)
    assert sizes[1::2] == ["An hour", "An afternoon"]
    for tasks in sizes[2::2]:
        for title, task in re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", tasks, re.M | re.S):
            with subtests.test(task=title):
                parts = dict(re.findall(r"^- \*\*(\w+)\.\*\* (.*?)(?=^- |\Z)", task, re.M | re.S))
                assert [*parts] == ["Gain", "Change", "Test", "Pattern"]
                assert re.search(r"`tests/[\w/]+\.py`", parts["Test"])
