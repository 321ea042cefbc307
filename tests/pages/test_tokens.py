"""The page on tokens, in numbers."""

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.tokens.embeddings import neighbours
from model.run.tokenizers import gpt2
from tests.cases import cases
from tests.model.hub.test_pairs import FIRST, SECOND
from tests.model.hub.test_pairs import saved as saved_pairs
from tests.model.hub_models import saved
from tests.model.tiny import sentence
from tests.pages.reading import control, drawn, numbers, own, said, shows, tables, traces, visit
from tests.pages.tokens_and_positions import opened
from viz.shell.pictures import LOOK_FOR


def strip(app: AppTest) -> str:
    return " ".join(part.proto.body for part in app.get("html"))


def test_markup_in_a_text_is_written_not_obeyed() -> None:
    written = strip(opened("tokens", "Tokens", text="<img src=x onerror=alert(1)> <em>"))
    assert "<img" not in written
    assert "<em>" not in written


def test_the_boxes_show_ids_and_bytes_and_torn_characters() -> None:
    model = own("stories")
    app = opened("tokens", "Tokens", text="a 🦊")
    for token in model.tokens("a 🦊"):
        assert f">{token.id}<" in strip(app)
        assert token.raw.hex(" ").upper() in strip(app)
    assert "part of 🦊" in strip(app)
    assert "part of a character" in said(app)


def steps(app: AppTest) -> list[str]:
    """The rows of a word that is cut step by step."""
    return re.findall(r"<li.*?</li>", strip(app).partition('class="steps"')[2])


def test_a_word_is_merged_step_by_step_and_spelled_where_the_model_kept_less() -> None:
    app = opened("tokens", "Tokens", text="the unseen embeddings")
    rows = steps(app)
    (first, *_), last = (re.findall(r"<b [^>]*>(.*?)</b>", row) for row in (rows[0], rows[-1]))
    assert first == "␣"
    raws = [token.raw.decode() for token in own("stories").tokens("the unseen embeddings")]
    assert "".join(last).replace("␣", " ") == " embeddings"
    assert len(last) == len(raws) - len(own("stories").tokens("the unseen"))
    assert "Check: the last" in said(app)
    assert "spelled in bytes" in strip(app)
    control(app, "Word").set_value(0).run()
    assert len(steps(app)) < len(rows)


@pytest.mark.slow
@cases("model, told", [
    ("minilm", "the longest piece"),
    ("smollm2-135m-instruct", "lowest rank"),
    ("induction", "and cuts none"),
])  # fmt: skip
def test_each_kind_of_tokenizer_shows_its_own_steps(model, told) -> None:
    text = "the tokenization" if model == "minilm" else sentence(own(model))
    app = opened("tokens", "Tokens", model=model, text=text)
    assert told in said(app)
    assert ("Check: the last" in said(app)) == (model != "induction")


def test_an_instruct_model_shows_its_chat_template_and_reads_it_when_asked() -> None:
    model = own("smollm2-135m-instruct")
    text = "Why is the sky blue?"
    app = opened("tokens", "As a chat", model=model.name, text=text)
    wrapped = model.tokenizer.wrapped(text)
    assert app.code[0].value == wrapped.strip()
    assert f"it has {len(model.tokens(wrapped))} tokens" in said(app)
    lines = re.findall(r"<ol>.*?</ol>", strip(app))
    assert [re.sub("<.*?>", "", line).split("␣")[0].split("⏎")[0] for line in lines] == [
        f"&lt;|im_start|&gt;{role}" for role in ("system", "user", "assistant")
    ]
    assert own_tokens(app) == text
    app.button(key="tokens-as-chat").click().run()
    assert app.text_area[0].value == wrapped
    assert f"text: {len(model.tokens(wrapped))} tokens." in said(app)
    assert "tokens-as-chat" not in [button.key for button in app.button]
    assert app.code[0].value == wrapped.strip()  # not wrapped again
    assert own_tokens(app) == text


def own_tokens(app: AppTest) -> str:
    """What stands in the framed boxes of a chat."""
    found = re.findall(r'<li class="named\b[^>]*><b>(.*?)</b>', strip(app))
    return "".join(found).replace("␣", " ").replace("·", " ")


def test_a_chat_is_offered_where_the_model_has_a_template() -> None:
    assert "As a chat" not in shows(opened("tokens", "Tokens"))[0].options
    app = opened("tokens", "Tokens", model="smollm2-135m-instruct")
    assert "As a chat" in shows(app)[0].options


@cases("text, told", [
    ("Tom saw a ball near Tom", ["Tom", "·Tom"]),
    ("the cat saw a cat", ["·cat", "·cat"]),
    ("a 🦊", ["‹F0›", "‹9F›", "‹A6›", "‹8A›"]),
    ("the old house", []),
])  # fmt: skip
def test_tokens_that_the_sentence_tells_of_are_framed(text, told) -> None:
    app = opened("tokens", "Tokens", model="house-gpt", text=text)
    framed = re.findall(r'<li class="named\b[^>]*><b>(.*?)</b><span>(\d+)', strip(app))
    assert [label for label, _ in framed] == told
    if "🦊" not in text:
        assert all(id_ in said(app) for _, id_ in framed)


def test_two_tokenizers_give_two_lists() -> None:
    text = "embeddings are vectors"
    app = opened("tokens", "Two tokenizers", text=text)
    assert "756 in the vocabulary" in said(app)
    assert "30,522 in the vocabulary" in said(app)
    assert "##" in strip(app)
    assert "[CLS]" in strip(app)
    control(app, "Beside it").set_value(1).run()
    assert "50,257 in the vocabulary" in said(app)
    table = tables(app)[0]
    ids = list(map(str, gpt2().encode(text)))
    assert list(table["id"][table["tokenizer"].str.startswith("GPT-2")]) == ids
    own_ids = [str(token.id) for token in own("stories").tokens(text)]
    assert list(table["id"][~table["tokenizer"].str.startswith("GPT-2")]) == own_ids


@cases("model, added", {"stories": 1, "minilm": 2}.items())
def test_the_bottom_row_is_the_framed_row(model, added) -> None:
    """Below it stands what is added, and last the sum: a position, and for MiniLM a segment."""
    app = opened("vectors", "Look-up", model=model)
    rows = drawn(app)
    place = control(app, "Token").value
    token = own(model).tokens("the cat saw the cat")[place]
    product = rows[-2 - added]
    np.testing.assert_array_equal(product, own(model).embedding[token.id])
    assert (rows[: -3 - added] == product).all(axis=1).sum() == 1
    np.testing.assert_allclose(rows[-1], rows[-2 - added : -1].sum(0), atol=1e-6)
    assert re.search(r"most 0, and [^.]* 0\.", said(app))


def test_the_bars_are_the_nearest_of_the_whole_vocabulary() -> None:
    app = opened("vectors", "Nearest tokens", text="the cat saw the dog")
    model = own("stories")
    token = model.tokens("the cat saw the dog")[1]
    control(app, "Token").set_value(1).run()
    expected = neighbours(model.embedding, token.id, 12)
    np.testing.assert_allclose(numbers(traces(app)[0]["x"]), [n.cosine for n in expected])
    table = tables(app)[0]
    assert list(table["id"]) == [str(n.id) for n in expected]


@cases("model", ["stories", "minilm"])
def test_the_same_sentence_twice_is_alike_at_every_state(model) -> None:
    app = opened("vectors", "Two sentences", model=model)
    control(app, "Second sentence").set_value("the cat saw the cat").run()
    word = numbers(traces(app)[0]["y"])
    np.testing.assert_allclose(word, 1, atol=1e-5)
    assert len(word) == 2 + 2 * len(own(model).attention_names)
    assert ("only earlier tokens" in said(app)) == (model == "stories")


@pytest.mark.slow
@cases("model", ["house-gpt", "stories", "minilm", "smollm2-135m-instruct"])
def test_what_is_said_of_two_sentences_is_the_curve(model) -> None:
    """The position may do more than attention, which may draw the vectors together again."""
    text, second = "Tom Hill saw a red ball", "The dog found the ball near the river"
    app = opened("vectors", "Two sentences", model=model, text=text)
    control(app, "Second sentence").set_value(second).run()
    curve = numbers(traces(app)[0]["y"])
    names = list(traces(app)[0]["hovertext"])
    told = next(one.value for one in app.markdown if LOOK_FOR in one.value)
    if own(model).config.positions in ("learned", "sinusoidal"):
        assert f"takes it to {curve[1]:.2f}." in told
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
    app = opened("vectors", "Two sentences")
    control(app, "Second sentence").set_value("the cat saw the cat").run()
    told = next(one.value for one in app.markdown if LOOK_FOR in one.value)
    assert "same position" in told
    assert "after that" not in told


def test_another_second_sentence_is_compared_at_its_longest_word() -> None:
    app = opened("vectors", "Two sentences", model="stories", text="a cat saw the ball")
    for second in ("The dog found the ball near the river", "Anna gave the ball to Tom"):
        control(app, "Second sentence").set_value(second).run()
        words = control(app, "Word and its positions")
        assert words.options[words.value].startswith("·ball")


def test_sentences_without_a_common_word_are_told_so() -> None:
    app = opened("vectors", "Two sentences")
    control(app, "Second sentence").set_value("Anna gave John a ball").run()
    assert "No token occurs" in said(app)
    control(app, "Second sentence").set_value(" ").run()
    assert "no text yet" in said(app)


def test_the_page_of_tokens_says_how_a_pair_is_written_where_a_model_reads_them() -> None:
    hint = "[SEP] between"
    app = visit("tokens", model=str(saved_pairs("bert")), text=f"{FIRST} [SEP] {SECOND}")
    assert hint in said(app)
    assert "[SEP]" not in said(visit("tokens", model=str(saved("roberta")), text=FIRST))
