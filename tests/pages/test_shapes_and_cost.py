"""The page of costs: what its numbers say, and what they become when sizes change."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.cost.cost import memory
from model.analysis.cost.operations import Lengths
from tests.cases import cases
from tests.pages.kinds import KINDS, name_of
from tests.pages.reading import choose, numbers, said, tables, visit
from viz.state.engine import engine
from viz.views.cost.choice import GPT2_CONFIG, PRESETS, SENTENCE

TEXT = "Tom Hill saw a red ball"
MEASURES = ("memory", "memory in float16", "operations", "parameters", "time")
SIZES = ("Batch", "Length", "Width", "Heads", "Layers", "Vocabulary")


def opened(measure: str = "memory", preset: str = SENTENCE, **parameters: str) -> AppTest:
    link = {"model": "stories", "text": TEXT, "cost-measure": measure}
    app = visit("shapes_and_cost", **link | parameters)
    if preset != SENTENCE:
        app.selectbox(key="cost-preset").set_value(preset).run()
    return app


def sizes(app: AppTest) -> list[int]:
    others = {
        name: app.text_input(key=f"cost-{name.lower()}") for name in SIZES if name != "Length"
    }
    length = app.select_slider(key="cost-length")
    return [int((others.get(name) or length).value) for name in SIZES]


def change(app: AppTest, name: str, value: int) -> None:
    if name == "Length":
        app.select_slider(key="cost-length").set_value(value).run()
    else:
        app.text_input(key=f"cost-{name.lower()}").set_value(str(value)).run()


def total(app: AppTest) -> str:
    return app.metric[0].value


def pictures(app: AppTest) -> list[dict]:
    return [json.loads(one.proto.spec) for one in app.get("plotly_chart")]


def areas(app: AppTest) -> tuple[float, float]:
    """Of the vectors, and of all tables of pairs."""
    (scale,) = [one for one in pictures(app) if "attention weights" in json.dumps(one)]
    found = []
    for trace in scale["data"]:
        x, y = trace["x"], trace["y"]
        corners = [at for at in range(len(x)) if at % 6 == 0]
        found.append(sum(abs((x[at + 2] - x[at]) * (y[at + 2] - y[at])) for at in corners))
    return found[0], found[1]


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
    (shapes,) = [table for table in tables(app) if "recorded" in table]
    recorded = dict(zip(shapes["operation"], shapes["recorded"], strict=True))
    assert recorded["Scores"] == "4 × 6 × 6"
    assert recorded["Q cut into heads"] == "—"


def test_the_drawing_is_to_scale_and_the_tables_grow_with_the_square() -> None:
    app = opened(preset="GPT-2 small")
    for length in (64, 128):
        change(app, "Length", length)
        vectors, pairs = areas(app)
        assert vectors == pytest.approx(length * 768)
        assert pairs == pytest.approx(12 * length**2)
        assert f"{length * 768:,} numbers" in said(app)


def test_own_sizes_join_a_link_that_names_a_known_model() -> None:
    """Its parameter is bound to a list: only the list may write it."""
    app = visit("shapes_and_cost", **{"cost-preset": "GPT-2 small", "model": "stories"})
    change(app, "Batch", 2)
    assert app.query_params["cost-numbers"].startswith("2-1024-")
    assert app.query_params["cost-preset"] == "GPT-2 small"
    assert not app.error


def test_the_models_own_count_is_printed_beside_the_formulas() -> None:
    app = opened("parameters")
    model = engine().model("stories", lambda *news: None)
    assert total(app) == f"{model.parameter_count:,}"
    assert "Difference: 0" in said(app)


def test_gpt_2_has_the_three_counts_of_the_notes() -> None:
    app = opened("parameters", "GPT-2 small")
    assert total(app) == "124,439,808"
    words = said(app)
    assert all(count in words for count in ("163,009,536", "124,412,160", "124,439,808"))
    assert "own tensors" not in words


@cases("measure", MEASURES[:-1])
def test_every_measure_is_drawn_for_every_preset(measure) -> None:
    app = opened(measure)
    for preset in PRESETS:
        app.selectbox(key="cost-preset").set_value(preset).run()
        assert not app.exception, preset
        assert not app.error, preset
        assert len(pictures(app)) == 3


def test_half_as_many_bytes_a_number_are_half_as_much_memory() -> None:
    needed = memory(GPT2_CONFIG, Lengths(1, 1_024))
    numbers_kept = needed.weights + needed.activations + needed.matrices
    for measure, width in (("memory", 4), ("memory in float16", 2)):
        app = opened(measure, "GPT-2 small")
        assert total(app) == f"{width * numbers_kept / 2**30:,.2f} GiB"


def test_an_encoder_keeps_no_cache() -> None:
    app = opened(model="minilm")
    assert "keeps no cache" in said(app)
    assert not [one for one in pictures(app) if "cache" in json.dumps(one)]


def test_the_shapes_of_both_stacks_are_those_of_the_formulas() -> None:
    app = opened(model="translate-en-fr", text="the black cat sees the dog")
    counts = said(app).partition("Check: ")[2].split()
    assert counts[0] == counts[2] != "0"
    (shapes,) = [table for table in tables(app) if "recorded" in table]
    assert {"decoder: cross-attention", "encoder: self-attention"} <= set(shapes["part"])


@cases("name", SIZES)
def test_every_size_changes_what_is_counted(name) -> None:
    app = opened("operations", "GPT-2 small")
    before = total(app)
    change(app, name, 2 * sizes(app)[SIZES.index(name)])
    assert not app.exception
    assert total(app) != before
    app.button(key="cost-back").click().run()
    assert total(app) == before


def test_heads_that_do_not_divide_the_width_get_a_sentence() -> None:
    app = opened(preset="GPT-2 small")
    change(app, "Heads", 7)
    assert not app.exception
    assert "7 equal heads" in said(app)
    app.text_input(key="cost-width").set_value("many").run()
    assert " 1 to 65,536." in said(app)
    app.text_input(key="cost-width").set_value("1,400").run()
    assert pictures(app)


def test_up_to_so_many_tokens_the_rest_costs_more_and_beyond_it_the_pairs() -> None:
    for measure in ("memory", "operations"):
        app = opened(measure, model="translate-en-fr", text="the black cat sleeps")
        (up_to,) = re.findall(r"Up to (\d+) tokens", said(app).replace(",", ""))
        (grown,) = [one for one in pictures(app) if "equal at" in json.dumps(one)]
        pairs, rest, *_ = grown["data"]
        more = numbers(pairs["y"]) > numbers(rest["y"])
        lengths = numbers(pairs["x"])
        assert not more[lengths <= int(up_to)].any()
        assert more[lengths >= int(up_to) + 1].all()


def test_own_sizes_stay_in_the_link() -> None:
    app = opened(preset="GPT-2 small")
    change(app, "Length", 64)
    choose(app, "Measure", "operations")
    assert sizes(app)[1] == 64
    assert app.query_params["cost-numbers"] == "1-64-768-12-12-50257"
    link = {"cost-preset": "GPT-2 small", "cost-numbers": "1-77-768-12-12-50257"}
    again = visit("shapes_and_cost", **link)
    assert sizes(again)[1] == 77


@cases("written", ["", "1-2", "a-b-c-d-e-f", "1-0-768-12-12-5", "1-2-3-4-5-99999999"])
def test_numbers_of_a_link_that_cannot_be_are_left_out(written) -> None:
    app = opened(preset="GPT-2 small", **{"cost-numbers": written})
    assert sizes(app) == [1, 1_024, 768, 12, 12, 50_257]


@cases("written", ["", "no such thing", "0"])
def test_a_measure_or_preset_of_a_link_that_cannot_be_is_left_out(written) -> None:
    app = visit("shapes_and_cost", **{"cost-measure": written, "cost-preset": written})
    assert app.selectbox(key="cost-preset").value == SENTENCE
    assert app.get("plotly_chart")


def test_another_sentence_has_other_sizes() -> None:
    app = opened()
    app.text_area[0].set_value("Tom").run()
    assert sizes(app)[1] == 1
    assert not app.exception


def test_time_is_measured_when_it_is_asked_for_and_a_width_too_large_is_not() -> None:
    app = opened("time")
    assert re.fullmatch(r"[\d.,]+ ms", total(app))
    (measured,) = [one for one in pictures(app) if "milliseconds" in json.dumps(one)]
    assert all((numbers(line["y"]) > 0).all() for line in measured["data"])
    app.button(key="cost-loop").click().run()
    (bars,) = [
        one
        for spec in pictures(app)
        for one in spec["data"]
        if "a loop over heads" in json.dumps(one)
    ]
    assert all(re.fullmatch(r"[\d.,]+ ms", word) for word in bars["text"])
    assert re.search(r"difference is (0|\de−[5-9])\.", said(app))
    change(app, "Width", 4_096)
    assert total(app) == "not measured"
    assert len(pictures(app)) == 1


def test_tokens_that_the_model_adds_are_told_from_those_that_were_typed() -> None:
    app = opened(model="minilm", text="The cat sat")
    assert sizes(app)[1] == 5
    assert "3 words and 3 tokens" in said(app)
    assert " 2 special ones: 5 " in said(app)


def test_grouped_keys_have_their_own_shapes_in_the_table_and_the_picture() -> None:
    app = opened(model=name_of("llama"), text=KINDS["llama"])
    length = sizes(app)[1]
    (shapes,) = [table for table in tables(app) if "recorded" in table]
    rows = dict(zip(shapes["operation"], shapes["shape"], strict=True))
    recorded = dict(zip(shapes["operation"], shapes["recorded"], strict=True))
    assert rows["Q"] == f"1 × {length} × 48"
    assert rows["K and V"] == f"1 × {length} × 16"
    assert recorded["K, heads first"] == f"2 × {length} × 8"
    counts = said(app).partition("Check: ")[2].split()
    assert counts[0] == counts[2] == "17"


def test_twice_a_translators_text_has_twice_the_target() -> None:
    app = opened(model="translate-en-fr", text="the black cat sleeps")
    assert re.search(r"matrices × 4, [^.]* × 2, [^.]* × 1\.", said(app))
    once, twice = (numbers_kept(app, length) for length in (4, 8))
    assert [twice[name] / once[name] for name in once] == [4, 2, 1, 2]


def numbers_kept(app: AppTest, length: int) -> dict[str, int]:
    change(app, "Length", length)
    (table,) = [one for one in tables(app) if "what" in one]
    counts = table["numbers"].str.replace(",", "").astype(int)
    return dict(zip(table["what"], counts, strict=True))
