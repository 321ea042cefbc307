"""What the guides say to write is run as it stands in them."""

import importlib
import math
import re
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.loading.registry import Entry, load_model
from model.nn.intervention import MASKS, Intervention, Mask
from model.nn.patches import Patch
from model.worked import Example
from tests.cases import cases
from tests.pages.laboratory import opened, widget
from viz.state import navigation
from viz.state.intervention_words import parts
from viz.state.link import View, from_link, to_link
from viz.state.navigation import PageEntry

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "how-to-add.md").read_text(encoding="utf-8")
INTERVENTIONS = (
    Intervention(scale=0.5),
    Intervention(mask="none"),
    Intervention(hidden=frozenset({1})),
    Intervention(blocked=frozenset({(2, 1)})),
    Intervention(fill=-1e9),
    Intervention(positions=False),
    Intervention(ablated=frozenset({("decoder.0.self", 1)})),
    Intervention(dropout=0.25),
    Intervention(dropout=0.25, seed=3),
    Intervention(weights=frozenset({("decoder.0.self", 1, 2, 0, 0.25)})),
    Intervention(
        patch=Patch("stories", "Tom Reed saw us: 1,2", frozenset({("head", "decoder.0.self", 1)}))
    ),
    Intervention(stream=frozenset({("decoder.0.self", 1, 2, 0.5)})),
    Intervention(scale=0.5, only=frozenset({"decoder.0.self"})),
    Intervention(window=2),
    Intervention(cap=False),
    Intervention(bias=False),
    Intervention(sinks=False),
)


def code(name: str) -> str:
    """The box of the guide that has this name behind its language."""
    found = re.search(rf"^```python {name}\n(.*?)^```$", GUIDE, re.M | re.S)
    assert found, f"the guide has no box {name!r}"
    return found[1]


def test_the_page_of_the_guide_has_ten_lines_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    source = code("page")
    assert len(source.splitlines()) <= 10
    added: PageEntry = eval(code("menu"), {"PageEntry": PageEntry})
    monkeypatch.setitem(
        navigation.PLACES, "Experiments", (*navigation.PLACES["Experiments"], added)
    )
    monkeypatch.setattr(navigation, "PAGES", (*navigation.PAGES, added))
    monkeypatch.setattr("viz.state.navigation.PAGES", (*navigation.PAGES,))
    app = AppTest.from_string(source, default_timeout=120).run()
    assert not app.exception
    assert not app.error
    assert app.title[0].value == "One head"
    assert any("at most" in line.value for line in app.caption)


def test_the_worked_example_of_the_guide_is_one() -> None:
    module = ModuleType("mean_and_spread")
    exec(code("worked"), module.__dict__)
    (example,) = (found for found in vars(module).values() if isinstance(found, Example))
    mean, distances = (step.result for step in example.with_inputs(scores=[4.0, 4.0, 7.0]).steps)
    np.testing.assert_allclose(mean, 5.0)
    np.testing.assert_allclose(distances, [-1.0, -1.0, 2.0])


def test_the_model_of_the_guide_is_an_entry() -> None:
    entry: Entry = eval(code("model"), {"Entry": Entry})
    assert entry.hub == "organisation/name"


def test_a_mask_needs_the_one_entry_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words, its law, the link and the list of masks."""
    added: dict[str, Mask] = eval(code("mask"), {"Mask": Mask, "np": np})
    ((name, mask),) = added.items()
    monkeypatch.setitem(MASKS, name, mask)
    windowed = Intervention(mask=name)
    trace = load_model("stories").trace("Tom saw Anna", intervention=windowed)
    near = np.eye(len(trace.tokens), dtype=bool) | np.eye(len(trace.tokens), k=-1, dtype=bool)
    for attention in trace.attention:
        np.testing.assert_array_equal(attention.mask, near)
        assert (attention.weights(0) > 0).tolist() == near.tolist()
    assert [part.words for part in parts(windowed)] == ["window of two"]
    view = View(intervention=windowed)
    assert from_link(to_link(view)) == (view, ())
    listed = widget(opened(mask=name), "laboratory-mask")  # as it is chosen
    assert mask.title in listed.options
    assert listed.value == name


def test_the_interventions_tried_here_are_of_every_field() -> None:
    tried = {
        field.name
        for intervention in INTERVENTIONS
        for field in fields(Intervention)
        if getattr(intervention, field.name) != getattr(Intervention(), field.name)
    }
    # A direction is of the package, and in no link.
    assert tried | {"steering"} == {field.name for field in fields(Intervention)}


@cases("intervention", INTERVENTIONS)
def test_an_intervention_is_carried_by_a_link_and_listed_in_words(intervention) -> None:
    assert from_link(to_link(View(intervention=intervention))) == (
        View(intervention=intervention),
        (),
    )
    assert not math.isnan(intervention.fill)
    listed = parts(intervention)
    assert listed
    assert any(replace(part.without, seed=0) != replace(intervention, seed=0) for part in listed)


DOTTED = re.compile(r"`([a-z_]\w*)\.([A-Za-z_]\w*)(?:\(.*\))?`")  # module.name, module.name(…)


def test_names_in_prose_exist() -> None:
    """What the docs call in a module of the shell, where pages find what they need, is there."""
    shell = {file.stem: file for file in (ROOT / "viz" / "shell").glob("*.py")}
    given = {
        (file.name, module, name)
        for file in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for module, name in DOTTED.findall(file.read_text(encoding="utf-8"))
        if module in shell
    }
    assert given
    assert {
        (file, module, name)
        for file, module, name in given
        if not hasattr(importlib.import_module(f"viz.shell.{module}"), name)
    } == set()
