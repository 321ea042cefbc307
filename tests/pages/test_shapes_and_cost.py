"""The page of shapes and costs: what its numbers say, and what they become when sizes change."""

import json
import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from model.analysis.axes import axis_operations
from tests.pages.kinds import KINDS, name_of
from tests.pages.reading import choose, control, numbers, said, tables, traces, visit
from viz.state.engine import engine
from viz.views.cost.choice import PRESETS, SENTENCE

TEXT = "Tom Hill saw a red ball"
VIEWS = ("Shapes", "Parameters", "Memory", "Operations", "Growth", "Time", "Axes")
SIZES = ("Batch", "Length", "Width", "Heads", "Layers", "Vocabulary")


def opened(view: str = "Shapes", preset: str = SENTENCE, **parameters: str) -> AppTest:
    app = visit("shapes_and_cost", **{"model": "stories", "text": TEXT, "show": view} | parameters)
    if preset != SENTENCE:
        app.selectbox(key="cost-preset").set_value(preset).run()
    return app


def sizes(app: AppTest) -> list[int]:
    return [int(app.number_input(key=f"cost-{name.lower()}").value) for name in SIZES]


def change(app: AppTest, name: str, value: int) -> None:
    app.number_input(key=f"cost-{name.lower()}").set_value(value).run()


def total(app: AppTest) -> str:
    (metric,) = app.metric
    return metric.value


def test_it_opens_on_the_sizes_of_the_sentence_and_every_recorded_shape_is_the_formulas() -> None:
    app = opened()
    model = engine().model("stories", lambda *news: None)
    config = model.config
    assert sizes(app) == [
        1, len(model.tokens(TEXT)), config.d_model, config.heads, config.decoder_layers,
        config.d_vocab,
    ]  # fmt: skip
    counts = said(app).partition("Check: ")[2].split()
    assert counts[0] == counts[2] != "0"
    assert "6 words" in said(app)
    shapes = tables(app)[0]
    recorded = dict(zip(shapes["operation"], shapes["recorded"], strict=True))
    assert recorded["Scores"] == "4 × 6 × 6"
    assert recorded["Q cut into heads"] == "—"


def test_the_blocks_are_the_new_numbers_of_each_operation_and_the_pairs_grow_with_the_square() -> (
    None
):
    app = opened(preset="GPT-2 small")
    change(app, "Length", 64)
    once = dict(blocks(app))
    assert once["Q"] == 64 * 768
    assert once["Scores"] == 12 * 64 * 64
    assert once["Weights"] == once["Scores"]
    change(app, "Length", 128)
    twice = dict(blocks(app))
    assert {name for name in once if twice[name] == 4 * once[name]} == {
        "Scores",
        "Scaled",
        "Weights",
    }
    assert {name for name in once if twice[name] == 2 * once[name]} == {*once} - {
        "Scores", "Scaled", "Weights",
    }  # fmt: skip


def blocks(app: AppTest) -> list[tuple[str, int]]:
    """The name of each block and how many numbers it is said to hold."""
    (picture,) = app.get("plotly_chart")
    texts = [name["text"] for name in json.loads(picture.proto.spec)["layout"]["annotations"]]
    found = [re.fullmatch(r"<b>(.+)</b> .*: ([\d,]+) numbers", text) for text in texts]
    return [(each[1], int(each[2].replace(",", ""))) for each in found if each is not None]


def test_own_sizes_join_a_link_that_names_a_known_model() -> None:
    """Its parameter is bound to a list: only the list may write it."""
    app = visit("shapes_and_cost", **{"cost-preset": "GPT-2 small", "model": "stories"})
    change(app, "Batch", 2)
    assert app.query_params["cost-numbers"].startswith("2-1024-")
    assert app.query_params["cost-preset"] == "GPT-2 small"
    assert not app.error


def test_the_models_own_count_is_printed_beside_the_formulas() -> None:
    app = opened("Parameters")
    model = engine().model("stories", lambda *news: None)
    counted = model.parameter_count
    assert total(app) == f"{counted:,}"
    assert "Difference: 0" in said(app)


def test_gpt_2_has_the_three_counts_of_the_notes() -> None:
    app = opened("Parameters", "GPT-2 small")
    assert total(app) == "124,439,808"
    assert list(tables(app)[0]["parameters"]) == [
        "163,009,536",
        "124,412,160",
        "124,439,808",
    ]
    assert "own tensors" not in said(app)


def test_every_view_is_drawn_for_every_preset(subtests: pytest.Subtests) -> None:
    for view in VIEWS[:-1]:
        with subtests.test(view=view):
            app = opened(view)
            for preset in PRESETS:
                app.selectbox(key="cost-preset").set_value(preset).run()
                assert not app.exception, preset
                assert not app.error, preset


def test_an_encoder_keeps_no_cache() -> None:
    assert "keeps no cache" in said(opened("Memory", model="minilm"))


def test_the_shapes_of_both_stacks_are_those_of_the_formulas() -> None:
    app = opened(model="translate-en-fr", text="the black cat sees the dog")
    counts = said(app).partition("Check: ")[2].split()
    assert counts[0] == counts[2] != "0"
    places = control(app, "Part of the model").options
    assert "Decoder: cross-attention" in places
    for at in range(len(places)):
        choose(app, "Part of the model", at)
        assert blocks(app), places[at]


def test_every_size_changes_what_is_counted(subtests: pytest.Subtests) -> None:
    for name in SIZES:
        with subtests.test(name=name):
            app = opened("Operations", "GPT-2 small")
            before = total(app)
            change(app, name, 2 * sizes(app)[SIZES.index(name)])
            assert not app.exception
            assert total(app) != before
            app.button(key="cost-back").click().run()
            assert total(app) == before


def test_heads_that_do_not_divide_the_width_get_a_sentence() -> None:
    app = opened("Shapes", "GPT-2 small")
    change(app, "Heads", 7)
    assert not app.exception
    assert "7 equal heads" in said(app)
    change(app, "Heads", 6)
    assert not app.error


def test_up_to_so_many_tokens_the_rest_costs_more_and_beyond_it_the_pairs() -> None:
    app = opened("Growth", model="translate-en-fr", text="the black cat sleeps")
    for cost in app.segmented_control(key="cost-grows").options:
        choose(app, "What grows", cost)
        words = said(app).replace(",", "")
        (up_to,) = re.findall(r"Up to \*\*(\d+) tokens", words)
        ((pairs, rest),) = re.findall(r"a = (\d+) and b = (\d+)", words)
        pairs_cost_more = [int(pairs) * n > int(rest) for n in (int(up_to), int(up_to) + 1)]
        assert pairs_cost_more == [False, True]


def test_own_sizes_stay_from_view_to_view_and_in_the_link() -> None:
    app = opened("Shapes", "GPT-2 small")
    change(app, "Length", 77)
    app.selectbox(key="choose-show").set_value("Axes").run()
    assert not [box for box in app.number_input if box.key == "cost-vocabulary"]
    app.selectbox(key="choose-show").set_value("Growth").run()
    assert sizes(app)[1] == 77
    assert app.query_params["cost-numbers"] == "1-77-768-12-12-50257"
    link = {"cost-preset": "GPT-2 small", "cost-numbers": "1-77-768-12-12-50257"}
    again = visit("shapes_and_cost", **link)
    assert sizes(again)[1] == 77


def test_numbers_of_a_link_that_cannot_be_are_left_out(subtests: pytest.Subtests) -> None:
    for written in ["", "1-2", "a-b-c-d-e-f", "1-0-768-12-12-5", "1-2-3-4-5-99999999"]:
        with subtests.test(written=written):
            app = opened("Shapes", "GPT-2 small", **{"cost-numbers": written})
            assert sizes(app) == [1, 1_024, 768, 12, 12, 50_257]


def test_a_view_or_preset_of_a_link_that_cannot_be_is_left_out(subtests: pytest.Subtests) -> None:
    for written in ["", "no such thing", "0"]:
        with subtests.test(written=written):
            app = visit("shapes_and_cost", **{"show": written, "cost-preset": written})
            assert app.selectbox(key="cost-preset").value == SENTENCE
            assert app.get("plotly_chart")


def test_another_sentence_has_other_sizes() -> None:
    app = opened()
    app.text_area[0].set_value("Tom").run()
    assert sizes(app)[1] == 1
    assert not app.exception


def test_nothing_is_measured_until_somebody_asks() -> None:
    app = opened("Time")
    steps, fused = (numbers(trace["y"]) for trace in traces(app))  # counted
    _, _, width, heads, *_ = sizes(app)
    tables_of_pairs = 3 * heads * 1024**2
    vectors = 5 * 1024 * width  # Q, K, V, context and output
    assert (steps[-1] * 2**20, fused[-1] * 2**20) == (4 * (tables_of_pairs + vectors), 4 * vectors)
    assert app.button(key="cost-measure").label == "Measure here"
    app.button(key="cost-loop").click().run()
    assert app.button(key="cost-loop").label == "Measure again"
    (bars,) = json.loads(app.get("plotly_chart")[-1].proto.spec)["data"]
    assert [re.fullmatch(r"[\d.,]+ ms", word) is not None for word in bars["text"]] == [True, True]
    assert re.search(r"difference is (0|\de−[5-9])\.", said(app))


def test_tokens_that_the_model_adds_are_told_from_those_that_were_typed() -> None:
    app = opened(model="minilm", text="The cat sat")
    assert sizes(app)[1] == 5
    assert "3 words and 3 tokens" in said(app)
    assert " 2 special ones: 5 " in said(app)


def test_grouped_keys_have_their_own_shapes_in_the_table_and_the_picture() -> None:
    app = opened(model=name_of("llama"), text=KINDS["llama"])
    assert control(app, "Part of the model").options[1] == "Self-attention"
    length = sizes(app)[1]
    shapes = tables(app)[0]
    rows = dict(zip(shapes["operation"], shapes["shape"], strict=True))
    recorded = dict(zip(shapes["operation"], shapes["recorded"], strict=True))
    assert rows["Q"] == f"1 × {length} × 48"
    assert rows["K and V"] == f"1 × {length} × 16"
    assert recorded["K, heads first"] == f"2 × {length} × 8"
    counts = said(app).partition("Check: ")[2].split()
    assert counts[0] == counts[2] == "17"


def test_twice_a_translators_text_has_twice_the_target() -> None:
    app = opened("Memory", model="translate-en-fr", text="the black cat sees the dog")
    assert re.search(r"matrices × 4, [^.]* × 2, [^.]* × 1\.", said(app))
    once = tables(app)[0]["numbers"].str.replace(",", "").astype(int)
    change(app, "Length", 2 * sizes(app)[1])
    twice = tables(app)[0]["numbers"].str.replace(",", "").astype(int)
    assert (twice / once).tolist()[:4] == [1, 2, 4, 2]  # weights, results, matrices, cache


def test_an_operation_on_axes_shows_each_number_where_pytorch_puts_it() -> None:
    app = opened("Axes")
    choose(app, "Operation", "transpose: heads before tokens")
    choose(app, "Tokens", 4)
    split = torch.arange(32).view(2, 4, 2, 2)
    before, after, memory = (cells(app, at) for at in range(3))
    assert before[np.isfinite(before)].tolist() == in_blocks(split)
    assert after[np.isfinite(after)].tolist() == in_blocks(split.transpose(1, 2))
    assert memory.tolist() == [list(range(32))]
    layouts = [json.loads(app.get("plotly_chart")[at].proto.spec)["layout"] for at in range(2)]
    for axis in ("xaxis", "yaxis"):  # equal cells
        assert layouts[0][axis]["range"] == layouts[1][axis]["range"]
    assert layouts[0]["margin"]["l"] == layouts[1]["margin"]["l"]
    assert layouts[0]["margin"]["r"] == layouts[1]["margin"]["r"]
    assert "heads.transpose(1, 2)" in app.code[0].value
    layouts = tables(app)[-1]
    assert list(layouts["strides"]) == ["(16, 4, 2, 1)", "(16, 2, 4, 1)"]
    assert list(layouts["contiguous"]) == ["yes", "no"]


def in_blocks(tensor: torch.Tensor) -> list[int]:
    """The numbers of four axes as they are drawn: the first two down and across the blocks."""
    return tensor.transpose(1, 2).flatten().tolist()


def cells(app: AppTest, at: int) -> np.ndarray:
    """The numbers in the cells of one of the pictures."""
    drawn = json.loads(app.get("plotly_chart")[at].proto.spec)["data"][-1]
    return numbers(drawn["z"])


def test_what_pytorch_refuses_is_shown_with_its_message_and_what_it_means() -> None:
    app = opened("Axes", **{"axes-operation": "view after transpose: it fails"})
    assert "view size is" in app.code[0].value
    assert axis_operations()["view-too-early"].means in said(app)
    app.number_input(key="axes-h").set_value(1).run()
    assert not app.error
    choose(app, "Operation", "masked_fill: the mask on the scores")
    choose(app, "Tokens of the mask", 2)
    assert "must match the" in app.code[0].value


def test_the_models_queries_are_cut_into_heads_and_its_scores_summed_along_each_axis(
    subtests: pytest.Subtests,
) -> None:
    for model in ["stories", "minilm", "llama"]:
        with subtests.test(model=model):
            text = KINDS.get(model, TEXT)
            link = {"axes-tensor": "Queries of your sentence"}
            ones = r"[^*]*\*\*1\.000\*\* and \*\*1\.000\*\*"
            app = opened("Axes", model=name_of(model), text=text, **link)
            assert re.search(r"recorded ones .* \de−[4-9]", said(app))
            choose(app, "Tensor", "Scores of your sentence")
            assert re.search(f"rows sum {ones}", said(app))
            choose(app, "Axis (dim)", -3)
            assert ("NaN" in said(app)) == (model != "minilm")
            choose(app, "Axis (dim)", -2)
            assert re.search(f"columns sum {ones}", said(app))
