"""The page on positions: word order, tables, likeness, and sums, in numbers."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Intervention
from model.analysis.stream.positions import similarity, sinusoidal
from model.analysis.tokens.embeddings import reordered
from model.loading.registry import models
from model.nn.positions import Alibi
from tests.cases import cases
from tests.model.tiny import loaded, sentence
from tests.pages.kinds import name_of
from tests.pages.reading import control, drawn, numbers, own, said, shows, traces, visit
from tests.pages.tokens_and_positions import opened
from viz.shell.pictures import LOOK_FOR
from viz.views.positions.word_order import LIFTED, OFF, ON

REORDERED = "Its words reordered"


def sizes(app: AppTest) -> list[str]:
    """What stands above each column of the picture: how far apart the sentences are."""
    (picture,) = app.get("plotly_chart")
    heads = json.loads(picture.proto.spec)["layout"]["xaxis"]["ticktext"]
    return [head.rpartition("max ")[2] for head in heads]


@cases("model", ["stories", "minilm"])
def test_it_opens_on_the_differences_each_way_and_they_vanish_where_order_is_lost(model) -> None:
    """A row a token: how far its last state in the second sentence lies from that in the first."""
    app, live = opened("positions", "Word order", model=model), own(model)
    first, second = app.text_area[0].value, control(app, REORDERED).value
    assert sorted(first.split()) == sorted(second.split())
    if model == "stories":
        first, second = f" {first}", f" {second}"
    ways = {ON: Intervention(), OFF: Intervention(positions=False)}
    if model == "stories":
        ways[LIFTED] = Intervention(positions=False, mask="none")
    columns, told = drawn(app).T, sizes(app)
    assert len(told) == len(columns) == len(ways)
    for shown, number, way in zip(columns, told, ways.values(), strict=True):
        one, other = (live.trace(text, intervention=way) for text in (first, second))
        run = reordered(one, other)
        np.testing.assert_allclose(shown, np.abs(run.second - run.first).max(-1), atol=1e-4)
        if run.largest > 1e-2:
            assert number == f"{run.largest:.2f}"
        else:
            assert run.largest <= float(number.replace("−", "-")) < 2 * run.largest
    assert columns[0].max() > 1e-2
    assert columns[-1].max() < 1e-3
    assert ("mask is itself" in said(app)) is (model == "stories")


@pytest.mark.slow
@cases("model", [*sorted(models), "llama"])
def test_word_order_opens_on_sentences_that_each_model_can_lay_side_by_side(model) -> None:
    """At once, with a picture, and with what is to be seen there in its own numbers."""
    name = name_of(model)
    app = opened("positions", "Word order", model=name, text=sentence(own(name)))
    assert not app.error
    assert not app.warning
    assert len(drawn(app)) > 2
    told = next(one.value for one in app.markdown if LOOK_FOR in one.value)
    found = [float(size.replace("−", "-")) for size in sizes(app)]
    assert found[0] > 1e-2 > found[-1]
    assert "left is rounding" in told
    assert ("causal mask" in told) == (len(found) == 3)
    if len(found) == 3:  # both numbers of which it speaks are the largest of their columns
        assert all(f"{size:.2f}" in told for size in found[:2])


def test_nothing_is_claimed_of_sentences_that_do_not_bear_it_out() -> None:
    app = opened("positions", "Word order", model="minilm", text="lion kills tiger")
    control(app, REORDERED).set_value("Tiger sees lion").run()
    assert "first: “kills”" in said(app)
    assert LOOK_FOR not in said(app)
    assert not app.exception
    control(app, REORDERED).set_value("lion kills tiger").run()  # the same sentence twice
    told = next(one.value for one in app.markdown if LOOK_FOR in one.value)
    assert "who does what" not in told


def test_each_kind_of_positions_is_drawn_and_named() -> None:
    app = opened("positions", "The table", model="stories")
    assert "positions of Stories" in said(app)
    kinds = control(app, "Kind of positions").options
    assert kinds[0] == "Learned"
    (picture,) = app.get("plotly_chart")
    (framed,) = json.loads(picture.proto.spec)["layout"]["shapes"]
    assert framed["y1"] == len(own("stories").tokens("the cat saw the cat")) - 0.5
    control(app, "Kind of positions").set_value(kinds.index("Sinusoidal")).run()
    np.testing.assert_allclose(drawn(app), sinusoidal(64, 128), atol=1e-6)
    assert f"Stories has {own('stories').config.position_law.words}" in said(app)
    control(app, "Kind of positions").set_value(kinds.index("Rotary")).run()
    assert drawn(app).shape == (64, 16)
    control(app, "Picture").set_value(1).run()
    control(app, "Pair").set_value(3).run()
    angles = np.arange(64) / 10_000 ** (2 * 3 / 32)
    np.testing.assert_allclose(numbers(traces(app)[0]["y"]), np.cos(angles), atol=1e-6)


@cases("model, offered", [
    ("stories", ["Word order", "The table", "How alike", "Added to the tokens"]),
    ("llama", ["Word order", "The table", "How alike"]),
    ("all-stages", ["Added to the scores", "Word order"]),
])  # fmt: skip
def test_views_are_offered_where_the_model_has_what_they_show(model, offered) -> None:
    app = visit("positions", model=name_of(model), text="The cat sat on the mat")
    (row,) = shows(app)
    assert list(row.options) == offered


def test_one_cell_is_written_with_its_own_numbers() -> None:
    app = opened("positions", "The table", model="minilm")
    kinds = control(app, "Kind of positions").options
    control(app, "Kind of positions").set_value(kinds.index("Sinusoidal")).run()
    control(app, "Position").set_value(2).run()
    control(app, "Dimension").set_value(1).run()
    written = " ".join(part.value for part in app.latex)
    assert f"{np.cos(2):.4f}" in written
    assert "10000^{0/384}" in written


def test_likeness_is_that_of_the_models_own_table() -> None:
    app = opened("positions", "How alike", model="minilm")
    table = own("minilm").module.embedding.positions.weight.numpy()[:64]
    alike = similarity(table)
    np.testing.assert_allclose(drawn(app), alike, atol=1e-6)
    assert f"**{np.diagonal(alike, 1).mean():.2f}**" in said(app)


@cases("model", ["stories", "minilm"])
def test_the_last_row_is_the_sum_of_the_rows_above(model) -> None:
    rows = drawn(opened("positions", "Added to the tokens", model=model))
    np.testing.assert_allclose(rows[:-2].sum(axis=0), rows[-1], atol=1e-6)


def test_slopes_are_drawn_for_each_head_and_one_distance_is_worked_out() -> None:
    app = visit("positions", model="all-stages", text="The cat sat on the mat")
    curves = traces(app)
    for head, curve in enumerate(curves):
        np.testing.assert_allclose(
            numbers(curve["y"]), numbers(curve["x"]) / 4 ** (head + 1), atol=1e-6
        )
    assert [curve["line"]["width"] for curve in curves] == [4, 1.5, 1.5, 1.5]
    control(app, "Head").set_value(2).run()
    control(app, "Distance").set_value(-8).run()
    assert "b = -0.015625 \\cdot 8 = -0.1250" in " ".join(part.value for part in app.latex)
    assert "these equal what" in said(app)
    assert Alibi.look in said(app)
    beyond = "distances of 8 or more"
    assert beyond in said(app)
    control(app, "Layer").set_value(1).run()
    assert beyond not in said(app)


def test_buckets_are_drawn_for_each_stack_from_its_own_table() -> None:
    app = visit(
        "positions", model="distance-buckets", text="The cat sat on the mat", target="a dog"
    )
    state = loaded("distance-buckets").module.state_dict()
    for number, stack in ((0, "encoder"), (2, "decoder")):
        control(app, "Layer").set_value(number).run()
        curve = traces(app)[1]
        at = numbers(curve["x"]).tolist().index(-3)
        own = state[f"{stack}.position_bias.table.weight"][3, 1]
        assert numbers(curve["y"])[at] == pytest.approx(float(own))
        assert curve["line"]["shape"] == "hvh"
        assert f"2 layers of the {stack} " in said(app)
        assert "\\min\\!\\left(n - 1," in " ".join(part.value for part in app.latex)
    control(app, "Show").set_value("Word order").run()
    assert len(sizes(app)) == 2
    assert not app.exception
