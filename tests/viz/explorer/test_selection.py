"""The choice lives in the page's view: the browser reports it there, and is moved only where the page says
something else."""

from collections.abc import Callable
from dataclasses import asdict

import pytest
import streamlit as st

from tests.cases import cases
from tests.viz.explorer.records import HERO, labels, record
from viz.explorer import Selection, component
from viz.explorer.message import layer_choices
from viz.explorer.packing import words
from viz.explorer.shown import forget

START = Selection(1, "scores", 4, 2)
CHOSEN = Selection(2, "weights", 5, 0)
LINKED = Selection(0, "masked", 1, 1)


class Browser:
    """Takes messages, reports choices, and opens layers."""

    def __init__(self) -> None:
        self.heard: list[Selection] = []

    def __call__(
        self,
        *,
        data: bytes,
        on_selection_change: Callable[[], None],
        on_layer_change: Callable[[], None],
        on_ahead_change: Callable[[], None],
        **rest: object,
    ) -> None:
        self.message, self.asked_ahead = words(data), on_ahead_change
        self.changed, self.opened = on_selection_change, on_layer_change

    def draws(self, selection: Selection, *, tokens: int = 6, seed: int = 0) -> Selection:
        """The selection that a page gets, which has this one in its view."""
        return component.explorer(
            record(tokens, seed=seed),
            queries=labels(tokens),
            keys=labels(tokens),
            selection=selection,
            check=0.0,
            hero=HERO,
            layers=["decoder.2.self"],
            select=self.heard.append,
        )

    @property
    def sent(self) -> tuple[Selection, object]:
        """The selection and its revision in the last message."""
        selection = self.message["selection"]
        assert isinstance(selection, dict)
        return Selection(**selection), self.message["revision"]

    @property
    def has_numbers(self) -> bool:
        """Whether the layer came with its numbers."""
        layer = self.message["layer"]
        assert isinstance(layer, dict)
        assert (layer["query"] is None) == (layer["output"] is None) == (layer["key"] is None)
        return layer["query"] is not None

    def reports(self, selection: Selection, revision: int) -> None:
        self.says(selection=asdict(selection) | {"revision": revision})

    def asks(self, run: str) -> None:
        """For the runs to which the switches lead from this one."""
        st.session_state["explorer"] = {"ahead": run}
        self.asked_ahead()

    def says(self, **state: object) -> None:
        st.session_state["explorer"] = state
        (self.opened if "layer" in state else self.changed)()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Browser:
    browser = Browser()
    monkeypatch.setattr(component, "_component", browser)
    st.session_state.clear()
    return browser


def test_the_first_selection_is_the_pages(browser: Browser) -> None:
    assert browser.draws(START) == START
    assert browser.sent == (START, 0)


def test_a_choice_reaches_the_page_and_the_message_stays_the_same_when_it_comes_back(
    browser: Browser,
) -> None:
    """Streamlit sends an equal message by its name alone, and a new one with the whole script."""
    browser.draws(START)
    browser.draws(START)
    message = browser.message
    for chosen in (CHOSEN, START):
        browser.reports(chosen, 0)
        assert browser.heard.pop() == chosen
        assert browser.draws(chosen) == chosen
        assert browser.message == message


def test_a_page_that_does_not_follow_a_choice_takes_it_back(browser: Browser) -> None:
    browser.draws(START)
    browser.reports(CHOSEN, 0)
    browser.draws(START)
    assert browser.sent == (START, 1)


def test_a_link_moves_the_reader_and_an_older_report_does_not_move_back(browser: Browser) -> None:
    browser.draws(START)
    browser.draws(LINKED)
    assert browser.sent == (LINKED, 1)
    browser.reports(CHOSEN, 0)  # chosen before the link arrived
    assert browser.heard == []
    browser.reports(CHOSEN, 1)
    assert browser.heard == [CHOSEN]


def test_forget_opens_the_same_example_again(browser: Browser) -> None:
    browser.draws(START)
    forget()
    browser.draws(START)
    assert browser.sent == (START, 1)
    browser.reports(CHOSEN, 0)  # under way when the example was opened
    assert browser.heard == []


def test_what_is_forgotten_before_it_was_shown_breaks_nothing(browser: Browser) -> None:
    forget()
    browser.draws(START)
    assert browser.sent == (START, 0)


def test_a_shorter_sentence_clamps_the_choice(browser: Browser) -> None:
    browser.draws(CHOSEN)
    assert browser.draws(CHOSEN, tokens=2) == Selection(2, "weights", 1, 0)
    assert browser.sent == (Selection(2, "weights", 1, 0), 1)


def test_a_link_out_of_range_is_clamped_once_and_stays(browser: Browser) -> None:
    for _ in range(2):
        browser.draws(Selection(99, "weights", 99, 99))
        assert browser.sent == (Selection(2, "weights", 5, 5), 0)


@pytest.mark.parametrize("nonsense", [
    {"selection": "all"},
    {"selection": {"head": "x", "revision": 0}},
    {"selection": {"head": 99, "stage": 7, "query": -3, "key": None, "revision": 0}},
    {"selection": {"revision": "0"}},
    {"other": 1},
])  # fmt: skip
def test_a_report_that_makes_no_sense_breaks_nothing(
    browser: Browser, nonsense: dict[str, object]
) -> None:
    browser.draws(START)
    browser.says(**nonsense)
    shown = browser.draws(browser.heard[-1] if browser.heard else START)
    assert shown == shown.clamped(heads=3, queries=6, keys=6)
    assert browser.sent[0] == shown


CLAMPED: list[tuple[Selection, Selection]] = [
    (Selection(9, "weights", 9, 9), Selection(2, "weights", 4, 6)),
    (Selection(-1, "weights", -1, -1), Selection(0, "weights", 0, 0)),
    (Selection(1, "nothing", 1, 1), Selection(1, "weights", 1, 1)),
]


@cases("asked, given", CLAMPED)
def test_a_selection_out_of_range_becomes_the_nearest_one(asked, given) -> None:
    assert asked.clamped(heads=3, queries=5, keys=7) == given


def test_a_layer_is_opened_only_if_it_is_one_of_those_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def browser(*, key: str, on_layer_change: Callable[[], None], **rest: object) -> None:
        names = ("decoder.1.self", "decoder.9.self", 7, None, ["decoder.0.self"])
        for said in [*({"name": name, "lost": False} for name in names), None, "decoder.0.self"]:
            st.session_state[key] = {"layer": said}
            on_layer_change()

    monkeypatch.setattr(component, "_component", browser)
    opened: list[str] = []
    component.explorer(
        record(6),
        queries=labels(6),
        keys=labels(6),
        selection=Selection(),
        check=0.0,
        hero=HERO,
        layers=["decoder.0.self", "decoder.1.self"],
        open_layer=opened.append,
        mount="layers",
    )
    assert opened == ["decoder.1.self"]


def test_a_layer_is_sent_once_as_long_as_the_browser_keeps_it(browser: Browser) -> None:
    def comes(seed: int, head: int = 0) -> bool:
        browser.draws(Selection(head), seed=seed)
        return browser.has_numbers

    assert comes(0)
    assert not comes(0, head=2)
    assert comes(1)  # another run
    assert not comes(0)
    assert all([comes(seed) for seed in range(2, 5)])
    assert not comes(0)  # used later than the second
    assert comes(1)


def test_a_layer_that_the_browser_has_lost_is_sent_again(browser: Browser) -> None:
    browser.draws(START)
    for said in ({"name": "decoder.2.self", "lost": False}, "all", 7, None, [], {"a": 1}):
        browser.says(layer=said)
        browser.draws(START)
        assert not browser.has_numbers
    browser.says(layer={"name": "decoder.2.self", "lost": True})
    browser.draws(START)
    assert browser.has_numbers


def test_layers_of_two_stacks_are_told_apart() -> None:
    names = ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    choices = layer_choices(names)
    assert [choice["label"] for choice in choices] == ["enc L0", "dec L0", "cross L0"]
    assert len({choice["title"] for choice in choices}) == len(names)
    assert [choice["label"] for choice in layer_choices(names[:1])] == ["L0"]


def test_a_layer_of_ones_own_module_has_its_name() -> None:
    names = ["encoder.0.self", "decoder.0.cross"]
    (choice, other) = layer_choices(names, {"encoder.0.self": "blocks.0.attn"})
    assert (choice["name"], choice["label"], choice["title"]) == (
        "encoder.0.self",
        "blocks.0.attn",
        "blocks.0.attn",
    )
    assert other["label"] == "cross L0"


def test_the_runs_of_switches_come_when_the_browser_asks_for_them(browser: Browser) -> None:
    turned = {"mask": {"on": True, "run": "other"}}

    def draws() -> list[object]:
        facts = {
            "queries": labels(6),
            "keys": labels(6),
            "check": 0.0,
            "hero": HERO,
            "baseline": None,
        }
        facts |= {"claims": (), "origin": None, "around": (), "device": "", "certificate": None}
        other = facts | {"attention": record(6, seed=1), "run": "other", "turns": {}}
        component.explorer(
            record(6), **facts, selection=START, run="shown", turns=turned, ahead=lambda: [other]
        )
        assert browser.message["turns"] == turned
        ahead = browser.message["ahead"]
        assert isinstance(ahead, list)
        return ahead

    assert draws() == []
    browser.asks("another run")
    assert draws() == []
    browser.asks("shown")
    (ahead,) = draws()
    assert ahead["run"] == "other"
    assert ahead["layer"]["query"] is not None
    assert draws() == []  # once
