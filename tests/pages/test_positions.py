"""The page on positions: word order, tables, likeness, and sums, in numbers."""

import math
import re

import numpy as np
import pytest

from model import Intervention
from model.analysis.stream.positions import likeness, sinusoidal
from model.analysis.tokens.embeddings import reordered
from model.loading.registry import models
from model.nn.positions import Alibi
from tests.model.tiny import loaded, sentence
from tests.pages.kinds import name_of
from tests.pages.reading import choose, control, drawn, numbers, own, said, traces, visit
from tests.pages.tokens_and_positions import opened
from viz.shell.pictures import LOOK_FOR
from viz.views.positions.word_order import LIFTED, OFF, ON

LABELS = ("First sentence", "Its words reordered")


def test_without_positions_minilm_gives_equal_rows() -> None:
    app = opened("positions", "Word order", model="minilm")
    control(app, "Picture").set_value("Positions off").run()
    rows = drawn(app)
    np.testing.assert_allclose(rows[0::3], rows[1::3], atol=1e-4)
    control(app, "Picture").set_value("Positions on").run()
    rows = drawn(app)
    assert np.abs(rows[0::3] - rows[1::3]).max() > 1e-2


def test_it_opens_on_the_differences_each_way_and_they_vanish_where_order_is_lost(
    subtests: pytest.Subtests,
) -> None:
    """A row a token: its last state in the second sentence minus that in the first."""
    for model in ["stories", "minilm"]:
        with subtests.test(model=model):
            app, live = opened("positions", "Word order", model=model), own(model)
            first, second = (control(app, label).value for label in LABELS)
            if model == "stories":
                first, second = f" {first}", f" {second}"
            ways = [Intervention(), Intervention(positions=False)]
            ways += [Intervention(positions=False, mask="none")] if model == "stories" else []
            rows = drawn(app)
            count = len(live.tokens(first))
            for at, way in enumerate(ways):
                one, other = (live.trace(text, intervention=way) for text in (first, second))
                run = reordered(one, other)
                shown = rows[at * (count + 1) : at * (count + 1) + count]
                np.testing.assert_allclose(shown, (run.second - run.first)[:, :48], atol=1e-4)
            assert np.abs(rows[:count]).max() > 1e-2
            assert np.abs(rows[-count:]).max() < 1e-3


def test_the_printed_differences_are_those_of_the_runs(subtests: pytest.Subtests) -> None:
    for model in ["stories", "minilm"]:
        with subtests.test(model=model):
            app = opened("positions", "Word order", model=model)
            texts = [control(app, label).value for label in LABELS]
            if model == "stories":
                texts = [f" {text}" for text in texts]
            live = own(model)

            def largest(intervention: Intervention) -> float:
                return reordered(
                    *(live.trace(text, intervention=intervention) for text in texts)
                ).largest

            def bound(way: str) -> float:
                found = re.search(rf"{way}: largest difference \*\*(\S+)\*\*, equal", said(app))
                return math.nan if found is None else float(found[1].replace("−", "-"))

            assert f"{ON}: largest difference **{largest(Intervention()):.4f}**" in said(app)
            off = largest(Intervention(positions=False))
            if model == "minilm":
                assert off <= bound(OFF) < 2 * off
                assert LIFTED not in said(app)
            else:
                assert f"{OFF}: largest difference **{off:.4f}**, different" in said(app)
                lifted = largest(Intervention(positions=False, mask="none"))
                assert lifted <= bound(LIFTED) < 2 * lifted
                assert "mask is itself" in said(app)


@pytest.mark.slow
def test_word_order_opens_on_sentences_that_each_model_can_lay_side_by_side(
    subtests: pytest.Subtests,
) -> None:
    """At once, with a picture, and with what is to be seen there in its own numbers."""
    for model in [*sorted(models), "llama"]:
        with subtests.test(model=model):
            name = name_of(model)
            app = opened("positions", "Word order", model=name, text=sentence(own(name)))
            assert not app.error
            assert not app.warning
            assert len(drawn(app)) > 2
            told = next(one.value for one in app.markdown if LOOK_FOR in one.value)
            ways = "|".join((ON, OFF, LIFTED))
            verdicts = dict(re.findall(rf"({ways}): .*?, (equal|different)", said(app)))
            assert verdicts[ON] == "different"
            assert verdicts.get(LIFTED, verdicts[OFF]) == "equal"
            assert ("model still tells" in told) == (LIFTED in verdicts)


def test_nothing_is_claimed_of_sentences_that_do_not_bear_it_out() -> None:
    app = opened("positions", "Word order", model="minilm")
    control(app, LABELS[1]).set_value("Tiger sees lion").run()
    word = control(app, LABELS[0]).value.split()[1]
    assert f"first: “{word}”" in said(app)
    assert LOOK_FOR not in said(app)
    assert not app.exception
    control(app, LABELS[1]).set_value(
        control(app, LABELS[0]).value
    ).run()  # the same sentence twice
    told = next(one.value for one in app.markdown if LOOK_FOR in one.value)
    assert "who does what" not in told


def test_each_kind_of_positions_is_drawn_and_named() -> None:
    app = opened("positions", "The table", model="stories")
    assert "positions of Stories" in said(app)
    control(app, "Kind of positions").set_value("sinusoidal").run()
    np.testing.assert_allclose(drawn(app), sinusoidal(64, 128), atol=1e-6)
    assert f"Stories has {own('stories').config.position_law.words}" in said(app)
    control(app, "Positions").set_value(20).run()
    assert drawn(app).shape == (20, 128)
    control(app, "Kind of positions").set_value("rotary").run()
    assert drawn(app).shape == (20, 16)
    control(app, "Picture").set_value("Curves").run()
    control(app, "Pairs").set_value([3]).run()
    (curve,) = traces(app)
    angles = np.arange(20) / 10_000 ** (2 * 3 / 32)
    np.testing.assert_allclose(numbers(curve["y"]), np.cos(angles), atol=1e-6)
    choose(app, "Pairs", [])


def test_one_cell_is_written_with_its_own_numbers() -> None:
    app = opened("positions", "The table", model="minilm")
    control(app, "Kind of positions").set_value("sinusoidal").run()
    control(app, "Position").set_value(2).run()
    control(app, "Dimension").set_value(1).run()
    written = " ".join(part.value for part in app.latex)
    assert f"{np.cos(2):.4f}" in written
    assert "10000^{0/384}" in written


def test_likeness_is_that_of_the_models_own_table() -> None:
    app = opened("positions", "How alike", model="minilm")
    table = own("minilm").module.embedding.positions.weight.numpy()[:64]
    np.testing.assert_allclose(drawn(app), likeness(table), atol=1e-6)


def test_the_last_row_is_the_sum_of_the_rows_above(subtests: pytest.Subtests) -> None:
    for model in ["stories", "minilm"]:
        with subtests.test(model=model):
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
    assert f"{OFF}: largest difference" in said(app)
    assert not app.exception
