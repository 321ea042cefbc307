"""The reader's choice stays, unless the page sends the reader somewhere else."""

from collections.abc import Callable
from dataclasses import asdict

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import viz.explorer
from tests.viz.explorer.records import labels, record
from viz.explorer import Selection
from viz.explorer.layer_buttons import layer_choices
from viz.explorer.packing import words


def script() -> None:
    import streamlit as st

    from tests.viz.explorer.records import labels, record
    from viz.explorer import Selection, explorer, forget

    if st.session_state.get("forget"):
        forget()
    st.session_state.result = explorer(
        record(st.session_state.get("tokens", 6)),
        queries=labels(st.session_state.get("tokens", 6)),
        keys=labels(st.session_state.get("tokens", 6)),
        selection=st.session_state.get("passed", Selection(1, "scores", 4, 2)),
        check=0.0,
    )


@pytest.fixture
def app() -> AppTest:
    app = AppTest.from_function(script, default_timeout=30).run()
    assert not app.exception
    return app


def sent(app: AppTest) -> tuple[Selection, int]:
    """The selection and its revision in the last message to the browser."""
    message = words(app.get("bidi_component")[0].proto.bytes)
    return Selection(**message["selection"]), message["revision"]


def report(app: AppTest, selection: Selection, revision: int) -> None:
    """What the browser does when the reader chooses."""
    app.session_state["explorer"] = {"selection": asdict(selection) | {"revision": revision}}
    app.run()
    assert not app.exception


def passing(app: AppTest, selection: Selection) -> None:
    app.session_state["passed"] = selection
    app.run()
    assert not app.exception


START = Selection(1, "scores", 4, 2)
CHOSEN = Selection(2, "weights", 5, 0)
LINKED = Selection(0, "masked", 1, 1)


def test_the_first_selection_is_the_pages(app: AppTest) -> None:
    assert app.session_state["result"] == START
    assert sent(app) == (START, 0)


def test_a_choice_comes_back_and_the_message_to_the_browser_stays_the_same(app: AppTest) -> None:
    whole = app.get("bidi_component")[0].proto.bytes
    report(app, CHOSEN, 0)
    assert app.session_state["result"] == CHOSEN
    bare = app.get("bidi_component")[0].proto.bytes
    assert len(bare) < len(whole)
    assert without_arrays(words(bare)) == without_arrays(words(whole))
    report(app, START, 0)
    assert app.get("bidi_component")[0].proto.bytes == bare


def without_arrays(message: dict[str, object]) -> dict[str, object]:
    """What a message says, but for where the numbers of its layer lie, if they are in it."""
    layer = message["layer"]
    assert isinstance(layer, dict)
    said = {name: fact for name, fact in layer.items() if not lies_somewhere(fact)}
    return message | {"layer": said}


def lies_somewhere(fact: object) -> bool:
    return fact is None or (isinstance(fact, dict) and "start" in fact)


@pytest.mark.parametrize("follow", ["never", "at once", "a run later"])
def test_a_page_may_pass_back_what_it_got_or_not(app: AppTest, follow: str) -> None:
    report(app, CHOSEN, 0)
    if follow != "never":
        app.session_state["passed"] = CHOSEN
    second = Selection(2, "weights", 3, 3)
    if follow == "at once":
        app.run()
    report(app, second, 0)
    assert app.session_state["result"] == second
    assert sent(app) == (START, 0)


def test_a_link_moves_the_reader_and_an_older_report_does_not_move_back(app: AppTest) -> None:
    report(app, CHOSEN, 0)
    passing(app, CHOSEN)
    passing(app, LINKED)
    assert app.session_state["result"] == LINKED
    assert sent(app) == (LINKED, 1)
    report(app, Selection(2, "weights", 0, 0), 0)  # chosen before the link arrived
    assert app.session_state["result"] == LINKED
    report(app, CHOSEN, 1)
    assert app.session_state["result"] == CHOSEN


def test_forget_opens_the_same_example_again(app: AppTest) -> None:
    report(app, CHOSEN, 0)
    app.session_state["forget"] = True
    passing(app, START)
    assert app.session_state["result"] == START
    assert sent(app) == (START, 1)


def test_a_component_that_lost_its_state_starts_from_the_page(app: AppTest) -> None:
    report(app, CHOSEN, 0)
    passing(app, CHOSEN)
    app.session_state["explorer"] = {}
    app.run()
    assert app.session_state["result"] == CHOSEN
    assert sent(app) == (CHOSEN, 1)


def test_a_shorter_sentence_clamps_the_choice(app: AppTest) -> None:
    report(app, CHOSEN, 0)
    app.session_state["tokens"] = 2
    app.run()
    assert app.session_state["result"] == Selection(2, "weights", 1, 0)


def test_a_link_out_of_range_is_clamped_once_and_stays(app: AppTest) -> None:
    passing(app, Selection(99, "weights", 99, 99))
    assert sent(app) == (Selection(2, "weights", 5, 5), 1)
    app.run()
    assert sent(app) == (Selection(2, "weights", 5, 5), 1)
    report(app, CHOSEN, 1)
    assert app.session_state["result"] == CHOSEN


@pytest.mark.parametrize(
    "nonsense",
    [
        {"selection": "all"},
        {"selection": {"head": "x", "revision": 0}},
        {"selection": {"head": 99, "stage": 7, "query": -3, "key": None, "revision": 0}},
        {"other": 1},
    ],
)
def test_a_report_that_makes_no_sense_breaks_nothing(
    app: AppTest, nonsense: dict[str, object]
) -> None:
    app.session_state["explorer"] = nonsense
    app.run()
    assert not app.exception
    result = app.session_state["result"]
    assert 0 <= result.head < 3
    assert 0 <= result.query < 6
    assert 0 <= result.key < 6


CLAMPED: list[tuple[Selection, Selection]] = [
    (Selection(9, "weights", 9, 9), Selection(2, "weights", 4, 6)),
    (Selection(-1, "weights", -1, -1), Selection(0, "weights", 0, 0)),
    (Selection(1, "nothing", 1, 1), Selection(1, "weights", 1, 1)),
]


@pytest.mark.parametrize(("asked", "given"), CLAMPED)
def test_a_selection_out_of_range_becomes_the_nearest_one(
    asked: Selection, given: Selection
) -> None:
    assert asked.clamped(heads=3, queries=5, keys=7) == given


def test_a_layer_is_opened_only_if_it_is_one_of_those_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def browser(*, key: str, on_layer_change: Callable[[], None], **rest: object) -> None:
        names = ("decoder.1.self", "decoder.9.self", 7, None, ["decoder.0.self"])
        for said in [*({"name": name, "fetched": []} for name in names), None, "decoder.0.self"]:
            st.session_state[key] = {"layer": said}
            on_layer_change()

    monkeypatch.setattr(viz.explorer, "_component", browser)
    opened: list[str] = []
    viz.explorer.explorer(
        record(6),
        queries=labels(6),
        keys=labels(6),
        selection=Selection(),
        check=0.0,
        layers=["decoder.0.self", "decoder.1.self"],
        open_layer=opened.append,
        mount="layers",
    )
    assert opened == ["decoder.1.self"]


class Browser:
    """Takes messages, and says what it has fetched itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(viz.explorer, "_component", self)
        st.session_state.clear()

    def __call__(self, *, data: bytes, on_layer_change: Callable[[], None], **rest: object) -> None:
        self.message, self.opened = words(data), on_layer_change

    def draws(self, seed: int, head: int = 0) -> bool:
        """Whether the layer of this seed comes with its numbers."""
        viz.explorer.explorer(
            record(6, seed=seed),
            queries=labels(6),
            keys=labels(6),
            selection=Selection(head),
            check=0.0,
            layers=["decoder.2.self"],
        )
        layer = self.message["layer"]
        assert isinstance(layer, dict)
        assert (layer["query"] is None) == (layer["output"] is None) == (layer["mask"] is None)
        self.part = layer["part"]
        return layer["query"] is not None

    def says(self, fetched: object) -> None:
        st.session_state["explorer"] = {"layer": {"name": "decoder.2.self", "fetched": fetched}}
        self.opened()


def test_a_layer_is_sent_once_as_long_as_the_browser_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    browser = Browser(monkeypatch)
    assert browser.draws(seed=0)
    assert not browser.draws(seed=0, head=2)
    assert browser.draws(seed=1)  # another run
    assert not browser.draws(seed=0)
    assert all(browser.draws(seed=seed) for seed in range(2, 5))
    assert not browser.draws(seed=0)  # used later than the second
    assert browser.draws(seed=1)


def test_a_layer_that_the_browser_fetched_itself_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    browser = Browser(monkeypatch)
    browser.draws(seed=0)
    part = browser.part
    browser.says([])  # nothing was there any more
    assert browser.draws(seed=1)
    browser.says([part])
    assert not browser.draws(seed=0)
    for nonsense in ("all", 7, None, [], {"a": 1}):
        browser.says(nonsense)
        assert browser.draws(seed=0)


def test_layers_of_two_stacks_are_told_apart() -> None:
    names = ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    choices = layer_choices(names)
    assert [choice["label"] for choice in choices] == ["enc L0", "dec L0", "cross L0"]
    assert len({choice["title"] for choice in choices}) == len(names)
    assert [choice["label"] for choice in layer_choices(names[:1])] == ["L0"]
