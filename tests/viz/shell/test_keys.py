"""A head or token that is chosen in the list becomes the view; what does not exist changes nothing."""

from dataclasses import replace

from tests.cases import cases
from viz.shell.keys import view_at
from viz.state.link import View

GPT = ("decoder.0.self", "decoder.1.self")
TRANSLATOR = ("encoder.0.self", "decoder.0.self", "decoder.0.cross")
VIEW = View(place="decoder.1.self", head=7, query=12, key=1)


def test_a_head_is_opened_in_its_layer() -> None:
    said = {"place": "decoder.0.self", "head": 3}
    assert view_at(VIEW, said, GPT, "decoder") == replace(VIEW, place="decoder.0.self", head=3)


def test_a_token_is_the_query_whose_row_is_shown() -> None:
    assert view_at(VIEW, {"token": 4}, GPT, "decoder") == replace(VIEW, query=4)


@cases("place, opened", [
    ("decoder.0.cross", {"place": "decoder.0.cross", "key": 2}),
    ("encoder.0.self", {"place": "encoder.0.self", "query": 2}),
    ("decoder.0.self", {"place": "encoder.0.self", "query": 2}),
])  # fmt: skip
def test_a_token_of_what_a_translator_reads_is_found_where_it_stands(place, opened) -> None:
    view = replace(VIEW, place=place)
    changed = view_at(view, {"token": 2}, TRANSLATOR, "encoder-decoder")
    assert changed == replace(view, **opened)  # type: ignore[arg-type]


@cases("said", [
    {"place": "decoder.9.self", "head": 0},
    {"place": "decoder.0.self", "head": "3"},
    {"place": "decoder.0.self", "head": -1},
    {"token": -1},
    {"token": "2"},
    {},
])  # fmt: skip
def test_what_a_browser_makes_up_changes_nothing(said) -> None:
    assert view_at(VIEW, said, GPT, "decoder") == VIEW
