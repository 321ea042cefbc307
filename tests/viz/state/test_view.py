"""The link says the whole view, and no link can break a page."""

import math
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from hypothesis import given
from hypothesis import strategies as st

from model.loading.registry import models
from model.nn.intervention import MASKS, SMALLEST, Intervention
from model.nn.patches import Patch
from tests.cases import cases
from tests.pages.reading import visit
from viz.state.link import TEXT_LIMIT, View, from_link, to_link
from viz.state.presets import EXAMPLES, example_claim

characters = st.characters(exclude_categories=["Cs"])
names = st.sampled_from(["decoder.0.self", "decoder.1.cross"])
positions = st.integers(0, 5000)


def numbers(least: float, most: float) -> st.SearchStrategy[float]:
    """Numbers that single precision tells from 0, and 0."""
    return st.floats(least, most).filter(lambda number: number == 0 or abs(number) >= SMALLEST)


interventions = st.builds(
    Intervention,
    scale=st.none() | numbers(-1e6, 1e6),
    mask=st.sampled_from(tuple(MASKS)),
    hidden=st.frozensets(positions, max_size=4),
    blocked=st.frozensets(st.tuples(positions, positions), max_size=4),
    fill=st.just(float("-inf")) | numbers(-1e38, 1e38),
    positions=st.booleans(),
    ablated=st.frozensets(st.tuples(names, st.integers(0, 40)), max_size=4),
    weights=st.frozensets(
        st.tuples(names, st.integers(0, 40), positions, positions, st.floats(0, 1)), max_size=1
    ),
    stream=st.frozensets(st.tuples(names, positions, positions, numbers(-1e38, 1e38)), max_size=1),
    patch=st.none()
    | st.builds(
        Patch,
        model=st.sampled_from(sorted(models)),
        text=st.text(characters, max_size=60).filter(str.strip),
        parts=st.frozensets(
            st.tuples(st.sampled_from(["head", "weights", "stream"]), names, positions)
            | st.tuples(st.just("feed_forward"), st.just("decoder.1.feed_forward"), positions),
            min_size=1,
            max_size=4,
        ),
    ),
    dropout=numbers(0, 0.9),
    seed=st.integers(0, 999),
    only=st.none() | st.frozensets(names, min_size=1),
    window=st.none() | st.integers(1, 5000),
    cap=st.booleans(),
    bias=st.booleans(),
    sinks=st.booleans(),
)
views = st.builds(
    View,
    text=st.text(characters, max_size=60),
    model=st.sampled_from(sorted(models)),
    place=st.sampled_from(["decoder.0.self", "decoder.1.cross", "encoder.3.self"]),
    head=st.integers(0, 40),
    stage=st.sampled_from(["query", "scores", "weights", "output"]),
    query=st.integers(0, 5000),
    key=st.integers(0, 5000),
    show=st.text(characters, max_size=20),
    target=st.none() | st.text(characters, max_size=60),
    second_text=st.text(characters, max_size=60),
    second_model=st.sampled_from(["", *sorted(models)]),
    detail=st.sampled_from(["simple", "full"]),
    intervention=interventions,
)


@given(views)
def test_a_copied_link_reopens_the_same_view(view: View) -> None:
    carried = dict(parse_qsl(urlencode(to_link(view)), keep_blank_values=True))
    assert from_link(carried) == (view, ())


@given(st.dictionaries(st.sampled_from([*to_link(View()), "text", "head", "mask", "x"]), st.text()))
def test_no_link_raises_and_each_unreadable_part_is_named(parameters: dict[str, str]) -> None:
    view, problems = from_link(parameters)
    assert isinstance(view, View)
    assert all(problem.startswith("The link's “") for problem in problems)


@cases(
    "name, value",
    [
        ("head", "-1"),
        ("head", "٣"),
        ("head", "9" * 400),
        ("query", "1e3"),
        ("scale", "yes"),
        ("scale", "1e9"),
        ("scale", "1e-320"),
        ("scale", "-1e-39"),
        ("fill", "1e-40"),
        ("dropout", "5e-324"),
        ("fill", "nan"),
        ("hidden", "1;2"),
        ("blocked", "1"),
        ("ablated", "decoder.0.self"),
        ("dropout", "1"),
        ("weights", "decoder.0.self:1:2:0:1.5"),
        ("weights", "decoder.0.self:1:2:0"),
        ("weights", "decoder.0.self:1:2:0:0.6,decoder.0.self:1:2:1:0.6"),
        ("weights", ",".join(["decoder.0.self:1:2:0:0.5"] * 1000)),
        ("stream", "decoder.0.self:1:2"),
        ("stream", "decoder.0.self:1:2:1e39"),
        ("stream", "decoder.0.self:1:2:0.5,decoder.0.self:1:2:0.6"),
        ("patch", "house-gpt head:decoder.0.self:1"),
        ("patch", "house-gpt head:decoder.0.self:1 " + "x" * (TEXT_LIMIT + 1)),
        ("patch", f"house-gpt {','.join(['head:decoder.0.self:1'] * 1000)} Tom"),
        ("patch", "house-gpt head:decoder.0.feed_forward:1 Tom"),
        ("patch", "house-gpt head:decoder.0.self:-1 Tom"),
        ("patch", "house-gpt leg:decoder.0.self:1 Tom"),
        ("patch", "../../etc head:decoder.0.self:1 Tom"),
        ("positions", "no"),
        ("window", "0"),
        ("window", "1.5"),
        ("cap", "yes"),
        ("mask", "all"),
        ("model", "../../etc"),
        ("stage", "<b>"),
        ("text", "x" * (TEXT_LIMIT + 1)),
    ],
)
def test_an_unreadable_part_takes_its_default_and_leaves_the_rest(name, value) -> None:
    view, problems = from_link({"head": "2", name: value})
    assert len(problems) == 1
    assert f"“{name}”" in problems[0]
    assert replace(view, head=View().head) == View()
    if name != "head":
        assert view.head == 2


def test_the_unchanged_start_needs_no_link() -> None:
    assert to_link(View()) == {}


def test_a_sentence_with_every_sign_of_a_link_survives() -> None:
    view = View(text="a&b=c#d?e+f%20 ü 🦊")
    assert from_link(dict(parse_qsl(urlencode(to_link(view)))))[0] == view


def test_only_an_example_has_something_to_look_for() -> None:
    first = EXAMPLES[0]
    assert first.view == View()
    assert example_claim(replace(first.view, query=0, stage="scores")) == first.look_for
    assert example_claim(replace(first.view, head=0)) is None
    assert example_claim(View(text="something else")) is None


def test_the_scale_nearest_to_0_is_drawn_and_minus_0_is_0() -> None:
    view, problems = from_link({"scale": repr(SMALLEST), "fill": "-0"})
    assert problems == ()
    assert view.intervention.scale == SMALLEST
    assert math.copysign(1, view.intervention.fill) == 1
    shown = visit("home", text="the cat sat", model="stories", scale=repr(SMALLEST))
    assert not shown.error
