"""More changes: each control changes what it names and nothing else, on each model."""

import math
from dataclasses import fields, replace

from model import Intervention
from tests.cases import cases
from tests.pages.laboratory import TEXT, assert_sound, intervention, linked, opened, widget
from tests.pages.reading import said
from viz.state.engine import engine
from viz.state.link import to_link

CONTROLS = [
    ("Mask", "laboratory-mask", "none", {"mask": "none"}),
    ("Mask", "laboratory-window", 3, {"window": 3}),
    ("Mask", "laboratory-hidden", [1, 3], {"hidden": frozenset({1, 3})}),
    ("Mask", "laboratory-fill", "−1e9", {"fill": -1e9}),
    ("Mask", "laboratory-fill", "0", {"fill": 0.0}),
    ("Mask", "laboratory-fill", "a number", {"fill": -1.0}),
    ("Scores", "laboratory-positions", False, {"positions": False}),
    ("Scores", "laboratory-scale", "not scaled: × 1", {"scale": 1.0}),
    ("Scores", "laboratory-dropout", 0.25, {"dropout": 0.25}),
    ("Heads", "laboratory-heads", [0, 2], {"ablated": frozenset({("decoder.1.self", 0),
        ("decoder.1.self", 2)})}),
    ("Heads", "laboratory-only", ["decoder.0.self"], {"only": frozenset({"decoder.0.self"})}),
]  # fmt: skip
STAGES = ("cap", "bias", "sinks")


@cases("group, key, value, expected", CONTROLS)
def test_each_control_changes_its_field_and_no_other(group, key, value, expected) -> None:
    app = opened(group)
    widget(app, key).set_value(value).run()
    assert_sound(app)
    for field in fields(Intervention):
        wanted = expected.get(field.name, getattr(Intervention(), field.name))
        assert getattr(intervention(app), field.name) == wanted, field.name


@cases("stage", STAGES)
def test_a_stage_of_attention_has_a_switch_where_the_model_has_it(stage) -> None:
    app = opened("Scores", model="all-stages")
    assert widget(app, "laboratory-positions").disabled  # they are in the biases
    assert not widget(
        opened("Scores", model="all-stages", positions="0"), "laboratory-positions"
    ).disabled
    widget(app, f"laboratory-{stage}").set_value(False).run()
    assert_sound(app)
    assert intervention(app) == replace(Intervention(), **{stage: False})
    widget(app, f"laboratory-{stage}").set_value(True).run()
    assert intervention(app) == Intervention()
    without = opened("Scores", **{stage: "0"})  # a model that has no such stage
    assert not [one for one in without.toggle if f"laboratory-{stage}" in one.key]
    assert f"has no {stage}:" in said(without)
    assert f"has no {stage}" not in said(opened("Scores"))


def test_a_window_says_where_it_hides_nothing() -> None:
    wide = "it hides nothing"
    for model, reaches, width in (("stories", False, 5), ("stories", True, 6)):
        assert (wide in said(opened(model=model, window=str(width)))) == reaches
    tokens = len(engine().model("minilm", lambda *news: None).tokens(TEXT))
    for reaches, width in ((False, 2 * tokens - 2), (True, 2 * tokens - 1)):
        assert (wide in said(opened(model="minilm", window=str(width)))) == reaches
    assert "8 keys, in 2 of 4 " in said(opened(model="all-stages"))


@cases("width", ["0", "-3", "two", "1.5", "1" * 30])
def test_a_link_with_an_impossible_window_opens_without_it_and_says_so(width) -> None:
    app = linked({"model": "stories", "text": TEXT, "window": width})
    assert not app.exception
    assert intervention(app) == Intervention()
    assert "window" in " ".join(info.value for info in (*app.info, *app.warning))


def test_the_box_of_the_window_takes_no_number_below_1_and_an_empty_one_is_no_window() -> None:
    app = opened(window="2")
    box = widget(app, "laboratory-window")
    assert (box.value, box.min) == (2, 1)
    box.set_value(None).run()
    assert intervention(app) == Intervention()


def test_a_switch_shows_its_state() -> None:
    app = opened("Scores", scale="1.0", mask="none", positions="0")
    assert widget(app, "hero-scaled").value is False
    assert widget(app, "hero-mask").value is False
    assert widget(app, "laboratory-positions").value is False
    assert widget(opened(mask="none"), "laboratory-mask").value == "none"


def test_every_field_of_an_intervention_has_its_control() -> None:
    reached = {name for *_, expected in CONTROLS for name in expected} | {
        "blocked",
        "seed",
        *STAGES,
    }
    reached |= {
        "weights",
        "stream",
        "patch",
    }  # by the editors of edges and the stream, and by "Patch"
    reached |= {"steering"}  # of the package; *Steer* shows its own runs
    assert reached == {field.name for field in fields(Intervention)}


def test_factor_mask_value_and_seed_take_any_number() -> None:
    app = opened("Scores", scale="0.5")
    widget(app, "laboratory-scale-number").set_value(-2.5).run()
    assert intervention(app).scale == -2.5
    app = opened("Mask", fill="-5.0")
    widget(app, "laboratory-fill-number").set_value(-1e20).run()
    assert intervention(app).fill == -1e20
    app = opened("Scores", dropout="0.3")
    widget(app, "laboratory-seed").set_value(7).run()
    assert (intervention(app).dropout, intervention(app).seed) == (0.3, 7)


def test_a_whole_layer_and_heads_of_two_layers_go_off_together() -> None:
    app = opened("Heads", ablated="decoder.0.self:1")
    widget(app, "laboratory-layer").click().run()
    whole = {("decoder.1.self", head) for head in range(4)}
    assert intervention(app).ablated == whole | {("decoder.0.self", 1)}
    assert_sound(app)


def test_edges_are_cut_mended_and_cut_by_the_row() -> None:
    app = opened("Edges", query="3", key="1")
    widget(app, "laboratory-edge").click().run()
    assert intervention(app).blocked == {(3, 1)}
    assert widget(app, "laboratory-edge").label == "Restore this edge"
    widget(app, "laboratory-edge").click().run()
    assert intervention(app) == Intervention()
    widget(app, "laboratory-row").click().run()
    assert intervention(app).blocked == {
        (3, key) for key in range(4)
    }  # the mask forbids the others
    assert_sound(app)


def test_a_weight_is_set_by_hand_all_of_a_row_goes_to_one_key_and_back() -> None:
    app = opened("Edges", query="3", key="1", head="2")
    box = next(box for box in app.number_input if box.label == "Weight in L1H2")
    box.set_value(0.25).run()
    widget(app, "laboratory-weight-set").click().run()
    assert intervention(app).weights == {("decoder.1.self", 2, 3, 1, 0.25)}
    assert_sound(app)
    widget(app, "laboratory-weight-all").click().run()
    assert intervention(app).weights == {("decoder.1.self", 2, 3, 1, 1.0)}
    widget(app, "laboratory-weight-back").click().run()
    assert intervention(app) == Intervention()
    app = opened("Edges", query="1", key="3", head="2")
    assert widget(app, "laboratory-weight-set").disabled


def test_an_edge_that_the_mask_forbids_is_said_to_be_masked_and_cannot_be_cut() -> None:
    app = opened("Edges", query="1", key="3")
    button = widget(app, "laboratory-edge")
    assert (button.label, button.disabled) == ("Already masked", True)
    widget(app, "laboratory-cell").click().run()
    assert intervention(app) == Intervention()
    assert "1 cannot attend to 3:" in said(app)
    app = opened("Edges", query="1", key="3", mask="none")
    button = widget(app, "laboratory-edge")
    assert (button.label, button.disabled) == ("Cut this edge", False)
    button.click().run()
    assert intervention(app).blocked == {(1, 3)}
    assert widget(app, "laboratory-edge").label == "Restore this edge"


def test_an_edge_that_is_cut_where_the_mask_forbids_it_can_be_mended() -> None:
    app = opened("Edges", query="1", key="3", blocked="1:3")
    widget(app, "laboratory-edge").click().run()
    assert intervention(app) == Intervention()


def test_the_cell_chosen_in_the_picture_is_cut() -> None:
    app = opened("Edges", query="4", key="2")
    widget(app, "laboratory-cell").click().run()
    assert intervention(app).blocked == {(4, 2)}
    assert_sound(app)


def test_dropout_says_what_it_did_to_the_shown_head() -> None:
    app = opened("Scores", dropout="0.5", seed="3", place="decoder.0.self", head="1")
    trace = (
        engine()
        .model("stories", lambda *news: None)
        .trace(TEXT, intervention=Intervention(dropout=0.5, seed=3))
    )
    attention = trace.find("decoder.0.self")
    gone = int((attention.dropped(1)[attention.weights(1) > 0] == 0).sum())
    assert f"L0H1 {gone} of 21 weights became 0" in said(app)


def test_a_shorter_text_and_another_model_leave_out_what_does_not_fit() -> None:
    app = opened(hidden="1,5", blocked="1:0,5:0", ablated="decoder.1.self:3")
    (box,) = [box for box in app.text_area if box.label == "Your sentence"]
    box.set_value("the cat").run()
    assert_sound(app)
    assert intervention(app).hidden == {1}
    assert intervention(app).blocked == {(1, 0)}
    assert "left out" in " ".join(info.value for info in app.info)
    app.selectbox(key="choose-model").set_value("translate-en-fr").run()
    assert_sound(app)
    assert intervention(app).blocked == frozenset()
    assert intervention(app).ablated == {("decoder.1.self", 3)}


def test_edges_of_a_model_with_two_stacks_name_the_shown_sublayer() -> None:
    app = opened(
        "Edges",
        model="translate-en-fr",
        text="the black cat sleeps",
        place="decoder.1.cross",
        query="1",
        key="2",
    )
    widget(app, "laboratory-edge").click().run()
    assert intervention(app).blocked == {(1, 2)}
    assert intervention(app).only == {"decoder.1.cross"}
    assert_sound(app)
    app.session_state["changes-group"] = "Heads"
    app.run()
    widget(app, "laboratory-only").set_value([]).run()
    assert_sound(app)
    assert intervention(app).only == {"decoder.1.cross"}


def test_parts_are_taken_back_one_by_one_undone_and_reset() -> None:
    app = opened(scale="1.0", mask="none", hidden="1,2")
    labels = [button.label for button in app.button if "✕" in button.label]
    assert labels == ["scores not scaled ✕", "no mask ✕", "1 ·Hill hidden ✕", "2 ·saw hidden ✕"]
    widget(app, "laboratory-part-2").click().run()
    assert intervention(app) == Intervention(scale=1.0, mask="none", hidden={2})
    widget(app, "laboratory-undo").click().run()
    assert intervention(app).hidden == {1, 2}
    widget(app, "laboratory-reset").click().run()
    assert intervention(app) == Intervention()
    assert "Nothing is changed" in said(app)
    widget(app, "laboratory-undo").click().run()
    assert intervention(app).hidden == {1, 2}
    assert_sound(app)


def test_an_intervention_in_the_link_comes_with_the_page_and_stays_in_it() -> None:
    wanted = Intervention(
        scale=0.25,
        mask="none",
        hidden={0},
        blocked={(2, 1)},
        fill=-1e9,
        positions=False,
        ablated={("decoder.0.self", 3)},
        dropout=0.2,
        seed=5,
        only={"decoder.1.self"},
    )
    view = replace(opened().session_state["view"], intervention=wanted, show="Changed")
    app = linked(to_link(view))
    assert_sound(app)
    assert intervention(app) == wanted
    kept = {name: app.query_params[name] for name in ("fill", "dropout", "seed", "only")}
    assert kept == {
        "fill": "-1000000000.0",
        "dropout": "0.2",
        "seed": "5",
        "only": "decoder.1.self",
    }
    assert intervention(opened(fill="-inf")).fill == -math.inf
