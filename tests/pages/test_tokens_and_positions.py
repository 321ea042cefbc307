"""The pages on tokens and positions: every view on every model, their numbers, any text."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Intervention
from model.analysis.stream.positions import likeness, sinusoidal
from model.analysis.tokens.embeddings import neighbours
from model.analysis.tokens.word_order import reordered
from model.loading.registry import models
from tests.model.tiny import loaded, sentence
from tests.pages.reading import drawn, numbers, tables, traces

PAGES = Path(__file__).resolve().parents[2] / "pages"
TOKENS = ("Tokens", "Two tokenizers", "Look-up", "Nearest tokens", "Windows", "Two sentences")
POSITIONS = ("Word order", "The table", "How alike", "Added to the tokens")
VIEWS = [("tokens", view) for view in TOKENS] + [("positions", view) for view in POSITIONS]
LABELS = ("First sentence", "The same words in another order")
HOSTILE = (
    "a",
    "<b>x</b> &lt; *a* $x^2$ :red[r] `c` #000001 🦊 \u202e abc",
    "word " * 600,
)


def opened(page: str, view: str, **parameters: str) -> AppTest:
    app = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=60)
    for name, value in ({"model": "stories", "text": "the cat saw the cat"} | parameters).items():
        app.query_params[name] = value
    app.run()
    control(app, "Show").set_value(view).run()
    assert not app.exception
    return app


def control(app: AppTest, label: str):
    kinds = (
        app.segmented_control,
        app.selectbox,
        app.slider,
        app.number_input,
        app.multiselect,
        app.text_input,
    )
    (found,) = [widget for kind in kinds for widget in kind if widget.label == label]
    return found


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning)
    return " ".join(part.value for kind in kinds for part in kind)


@pytest.mark.parametrize("model", sorted(models))
@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_every_view_is_drawn_with_every_model(page: str, view: str, model: str) -> None:
    app = opened(page, view, model=model, text=sentence(loaded(model)))
    assert not app.error
    assert "What to look for" in said(app)
    assert app.get("plotly_chart") or app.get("html")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_no_text_breaks_a_view(page: str, view: str, text: str) -> None:
    for model in ("stories", "minilm"):
        app = opened(page, view, model=model, text=text)
        assert not app.error


def strip(app: AppTest) -> str:
    return " ".join(part.proto.body for part in app.get("html"))


def test_markup_in_a_text_is_written_not_obeyed() -> None:
    written = strip(opened("tokens", "Tokens", text="<img src=x onerror=alert(1)> <b>"))
    assert "<img" not in written
    assert "<b>" not in written


def test_the_boxes_show_ids_and_bytes_and_torn_characters() -> None:
    model = loaded("stories")
    app = opened("tokens", "Tokens", text="a 🦊")
    for token in model.tokens("a 🦊"):
        assert f">{token.id}<" in strip(app)
        assert token.raw.hex(" ").upper() in strip(app)
    assert "part of 🦊" in strip(app)
    assert "no whole character" in said(app)


def test_two_tokenizers_give_two_lists() -> None:
    app = opened("tokens", "Two tokenizers", text="embeddings are vectors")
    assert "50,257 tokens" in said(app)
    assert "756 tokens" in said(app)
    control(app, "Beside GPT-2's").set_value("minilm").run()
    assert "30,522 tokens" in said(app)
    assert "##" in strip(app)
    assert "[CLS]" in strip(app)


@pytest.mark.parametrize("model", ["stories", "minilm"])
def test_the_bottom_row_is_the_framed_row(model: str) -> None:
    app = opened("tokens", "Look-up", model=model)
    rows = drawn(app)
    place = control(app, "Token").value
    token = loaded(model).tokens("the cat saw the cat")[place]
    np.testing.assert_array_equal(rows[-1], loaded(model).embedding[token.id])
    assert (rows[:-2] == rows[-1]).all(axis=1).sum() == 1
    assert re.search(r"differs from the row by at most 0, and .* in this pass by 0\.", said(app))


def test_the_bars_are_the_nearest_of_the_whole_vocabulary() -> None:
    app = opened("tokens", "Nearest tokens", text="the cat saw the dog")
    model = loaded("stories")
    token = model.tokens("the cat saw the dog")[1]
    control(app, "Token").set_value(1).run()
    expected = neighbours(model.embedding, token.id, 12)
    np.testing.assert_allclose(numbers(traces(app)[0]["x"]), [n.cosine for n in expected])
    table = tables(app)[0]
    assert list(table["id"]) == [str(n.id) for n in expected]


def test_length_and_stride_move_the_windows() -> None:
    app = opened("tokens", "Windows", text="one two three four five six seven eight")
    tokens = len(loaded("stories").tokens("one two three four five six seven eight"))
    control(app, "Length").set_value(3).run()
    control(app, "Stride").set_value(4).run()
    inputs, targets = traces(app)[:2]
    np.testing.assert_array_equal(numbers(targets["base"]), numbers(inputs["base"]) + 1)
    np.testing.assert_array_equal(np.diff(numbers(inputs["base"])), 4)
    assert set(numbers(inputs["x"])) == {3}
    table = tables(app)[-1]
    assert len(table) == len(range(0, tokens - 3, 4))
    for row in table.itertuples():
        assert row.input.split(" ")[1:] == row.target.split(" ")[:-1]


def test_one_token_has_no_window_and_says_so() -> None:
    assert "at least two tokens" in said(opened("tokens", "Windows", text="a"))


@pytest.mark.parametrize(
    ("model", "text", "read"),
    [
        ("minilm", "The animal didn't cross", "the animal didn"),
        ("translate-en-fr", "the black cat sleeps", "the black cat"),
        ("house-gpt", "Tom saw a red ball", "Tom saw a"),
        ("house-gpt", "你好", "‹E4›"),  # a window that ends within a character
    ],
)
def test_what_a_window_reads_stands_there_as_it_was_typed(model: str, text: str, read: str) -> None:
    app = opened("tokens", "Windows", model=model, text=text)
    pairs = next(frame for frame in tables(app) if "after reading" in frame)
    assert read in [one.replace("⁠", "") for one in pairs["after reading"]]


def test_one_token_that_no_window_reaches_is_one() -> None:
    app = opened("tokens", "Windows", text="the cat saw the cat the")  # six tokens, windows of 4
    assert "The last token is no target here: no whole window reaches it." in said(app)


@pytest.mark.parametrize("model", ["stories", "minilm"])
def test_the_same_sentence_twice_is_alike_at_every_state(model: str) -> None:
    app = opened("tokens", "Two sentences", model=model)
    control(app, "Second sentence").set_value("the cat saw the cat").run()
    word = numbers(traces(app)[0]["y"])
    np.testing.assert_allclose(word, 1, atol=1e-5)
    assert len(word) == 2 + 2 * len(loaded(model).attention_names)
    assert ("only back" in said(app)) == (model == "stories")


@pytest.mark.parametrize("model", ["house-gpt", "stories", "minilm", "smollm2-135m-instruct"])
def test_what_is_said_of_two_sentences_is_the_curve(model: str) -> None:
    """The position may do more than attention, which may draw the vectors together again."""
    text, second = "Tom Hill saw a red ball", "The dog found the ball near the river"
    app = opened("tokens", "Two sentences", model=model, text=text)
    control(app, "Second sentence").set_value(second).run()
    curve = numbers(traces(app)[0]["y"])
    names = list(traces(app)[0]["hovertext"])
    told = next(one.value for one in app.markdown if "What to look for" in one.value)
    if loaded(model).config.positions in ("learned", "sinusoidal"):
        assert f"Adding the positions takes it to {curve[1]:.2f}." in told
    else:
        assert "adds no position" in told
    moves = re.findall(
        r"largest (fall|rise) after that: at (.+?), from (-?[\d.]+) to (-?[\d.]+)\.", told
    )
    assert {move for move, *_ in moves} == {"fall", "rise"}
    for move, name, before, after in moves:
        at = names.index(name)
        assert (before, after) == (f"{curve[at - 1]:.2f}", f"{curve[at]:.2f}")
        sign = 1 if move == "rise" else -1
        assert sign * (curve[at] - curve[at - 1]) == max(sign * np.diff(curve[1:]))


def test_two_equal_sentences_part_nowhere() -> None:
    app = opened("tokens", "Two sentences")
    control(app, "Second sentence").set_value("the cat saw the cat").run()
    told = next(one.value for one in app.markdown if "What to look for" in one.value)
    assert "same position" in told
    assert "after that" not in told


def test_sentences_without_a_common_word_are_told_so() -> None:
    app = opened("tokens", "Two sentences")
    control(app, "Second sentence").set_value("Anna gave John a ball").run()
    assert "No token occurs in both" in said(app)
    control(app, "Second sentence").set_value(" ").run()
    assert "There is no text yet" in said(app)


def test_without_positions_minilm_gives_equal_rows() -> None:
    app = opened("positions", "Word order", model="minilm")
    rows = drawn(app)
    np.testing.assert_allclose(rows[0::3], rows[1::3], atol=1e-4)
    control(app, "Draw").set_value("Positions on").run()
    rows = drawn(app)
    assert np.abs(rows[0::3] - rows[1::3]).max() > 1e-2


@pytest.mark.parametrize("model", ["stories", "minilm"])
def test_the_printed_differences_are_those_of_the_runs(model: str) -> None:
    app = opened("positions", "Word order", model=model)
    texts = [control(app, label).value for label in LABELS]
    if model == "stories":
        texts = [f" {text}" for text in texts]
    live = loaded(model)

    def largest(change: Intervention) -> float:
        return reordered(*(live.trace(text, intervention=change) for text in texts)).largest

    def bound(way: str) -> float:
        found = re.search(rf"{way}: largest difference \*\*(\S+)\*\*, equal", said(app))
        return math.nan if found is None else float(found[1])

    assert f"Positions on: largest difference **{largest(Intervention()):.4f}**" in said(app)
    off = largest(Intervention(positions=False))
    if model == "minilm":
        assert off <= bound("Positions off") < 2 * off
        assert "mask lifted" not in said(app)
    else:
        assert f"Positions off: largest difference **{off:.4f}**, different" in said(app)
        lifted = largest(Intervention(positions=False, mask="none"))
        assert lifted <= bound("mask lifted") < 2 * lifted
        assert "mask is a kind of position" in said(app)


@pytest.mark.parametrize("model", [*sorted(models), "smollm2-135m-instruct"])
def test_word_order_opens_on_sentences_that_each_model_can_lay_side_by_side(model: str) -> None:
    """At once, with a picture, and with what is to be seen there in its own numbers."""
    app = opened("positions", "Word order", model=model, text=sentence(loaded(model)))
    assert not app.error
    assert not app.warning
    assert len(drawn(app)) > 2
    told = next(one.value for one in app.markdown if "What to look for" in one.value)
    verdicts = dict(
        re.findall(r"(Positions on|Positions off|mask lifted): .*?, (equal|different)", said(app))
    )
    assert verdicts["Positions on"] == "different"
    assert verdicts.get("mask lifted", verdicts["Positions off"]) == "equal"
    assert ("still tells the two sentences apart" in told) == ("mask lifted" in verdicts)


def test_nothing_is_claimed_of_sentences_that_do_not_bear_it_out() -> None:
    app = opened("positions", "Word order", model="minilm")
    control(app, LABELS[1]).set_value("Tiger sees lion").run()
    assert "cannot be laid side by side" in said(app)
    assert "Only in the first" in said(app)
    assert "What to look for" not in said(app)
    assert not app.exception
    control(app, LABELS[1]).set_value(
        control(app, LABELS[0]).value
    ).run()  # the same sentence twice
    told = next(one.value for one in app.markdown if "What to look for" in one.value)
    assert "who does what" not in told


def test_each_kind_of_positions_is_drawn_and_named() -> None:
    app = opened("positions", "The table", model="stories")
    assert "These are the positions of stories" in said(app)
    control(app, "Kind of positions").set_value("sinusoidal").run()
    np.testing.assert_allclose(drawn(app), sinusoidal(64, 128), atol=1e-6)
    assert "stories has learned positions" in said(app)
    control(app, "Positions").set_value(20).run()
    assert drawn(app).shape == (20, 128)
    control(app, "Kind of positions").set_value("rotary").run()
    assert drawn(app).shape == (20, 16)
    control(app, "Draw as").set_value("Curves").run()
    control(app, "Pairs").set_value([3]).run()
    (curve,) = traces(app)
    angles = np.arange(20) / 10_000 ** (2 * 3 / 32)
    np.testing.assert_allclose(numbers(curve["y"]), np.cos(angles), atol=1e-6)
    control(app, "Pairs").set_value([]).run()
    assert not app.exception


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
    table = loaded("minilm").module.embedding.positions.weight.numpy()[:64]
    np.testing.assert_allclose(drawn(app), likeness(table), atol=1e-6)


@pytest.mark.parametrize("model", ["stories", "minilm"])
def test_the_last_row_is_the_sum_of_the_rows_above(model: str) -> None:
    rows = drawn(opened("positions", "Added to the tokens", model=model))
    np.testing.assert_allclose(rows[:-2].sum(axis=0), rows[-1], atol=1e-6)
