"""The encoder–decoder page: translation by steps, alignment, attentions, and French of one's own."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from model import load_model
from model.training.alignment import reference_phrase, source_words, target_words
from tests.pages.reading import choose, control, numbers, own, press, said, tables, visit
from tools.training.translate import words
from viz.figures.bars import GivenWord
from viz.shell.frame import IDEA
from viz.state.engine import engine
from viz.views.translation.sentences import (
    FIRST,
    SENTENCES,
    english_groups,
    french_groups,
    made_up,
    near,
    unknown,
)
from viz.views.translation.views import product_in_words

ROOT = Path(__file__).resolve().parents[2]
VIEWS = ("Translate", "Alignment", "Three attentions", "Your own French")
TEXT = "the tired doctor opens the red door"


def opened(**parameters: str) -> AppTest:
    return visit("encoder_decoder", **{"model": "translate-en-fr", "text": TEXT} | parameters)


def marked(app: AppTest) -> str:
    """The French that is written so far."""
    (html,) = [e.proto.body for e in app.get("html") if "<mark" in e.proto.body]
    return re.sub(r"<[^>]*>", "", html)


def test_the_french_comes_out_word_by_word() -> None:
    app = opened(text="the black cat sleeps.")
    assert marked(app) == "le chat noir"  # it opens where noun and adjective have changed places
    (listed,) = [table for table in tables(app) if "logit" in table]
    assert listed["token"][0] == "noir"
    assert listed["probability"][0] > 0.9
    choose(app, "Step", 2)
    assert marked(app) == "le chat"
    choose(app, "Step", 5)
    assert marked(app) == "le chat noir dort ."
    choose(app, "Step", control(app, "Step").max)
    assert marked(app).endswith("end&gt;")
    assert "of its weight on “" in said(app)
    assert "the same logits" in said(app)


def test_the_decoder_asks_in_cross_attention_and_the_encoder_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = st.expander
    monkeypatch.setattr(
        st, "expander", lambda label, *given, **more: closed(label, label == IDEA, **more)
    )
    (cross,) = [one.value for one in opened().latex if "{E" in one.value and "{Y" in one.value]
    streams = re.findall(r"\{(\w)\\,W_(\w)", cross)
    assert streams == [("Y", "Q"), ("E", "K"), ("E", "V")]


def test_the_alignment_tells_the_share_on_the_reference_and_the_crossing() -> None:
    app = opened(show="Alignment")
    assert "This head puts **0.99" in said(app)
    assert re.search("“tired doctor”[^.]*“médecin fatigué”", said(app))
    heads = next(box for box in app.selectbox if box.label == "Head")
    shares = [float(option.split(", ")[1].split()[0]) for option in heads.options]
    assert shares == sorted(shares, reverse=True)
    assert heads.value == ("decoder.1.cross", 0)
    assert len(heads.options) == 8


def test_what_the_grammar_cannot_say_has_no_reference_and_what_differs_is_told() -> None:
    assert "no reference" in said(opened(show="Alignment", text="these three dogs"))
    other = "the cat eats the apple in the garden"
    phrase = reference_phrase(source_words(own("translate-en-fr").trace(other)))
    assert f"“{' '.join(phrase.french)}”" in said(opened(show="Alignment", text=other))


def test_the_three_maps_are_those_of_the_layer_and_head() -> None:
    app = opened(show="Three attentions")
    trace = own("translate-en-fr").trace(TEXT)
    for place, head in (("decoder.1.cross", 0), ("decoder.0.cross", 3)):
        box = next(box for box in app.selectbox if box.label == "Head")
        box.set_value((place, head)).run()
        assert not app.exception
        layer = place.split(".")[1]
        maps = [json.loads(one.proto.spec)["data"][-1]["z"] for one in app.get("plotly_chart")]
        for cells, name in zip(
            maps, ("encoder.L.self", "decoder.L.self", "decoder.L.cross"), strict=True
        ):
            weights = trace.find(name.replace("L", layer)).weights(head)
            drawn = numbers(cells).reshape(weights.shape)
            hidden = np.isnan(drawn)
            np.testing.assert_allclose(np.where(hidden, 0, drawn), weights, atol=1e-6)
            assert hidden.any() == (name == "decoder.L.self")


def test_french_of_ones_own_is_judged_word_by_word() -> None:
    app = opened(text="the black cat sleeps", show="Your own French")
    box = next(field for field in app.text_input if field.label == "Your French")
    box.set_value("le noir chat dort").run()
    assert not app.exception
    assert "expected is “noir”" in said(app)
    assert "written “chat”" in said(app)
    wrong = "le chat bonjour"
    next(field for field in app.text_input if field.label == "Your French").set_value(wrong).run()
    assert "know “bonjour”" in said(app)
    field = next(field for field in app.text_input if field.label == "Your French")
    assert field.value == wrong
    press(app, "Take the model's")
    field = next(field for field in app.text_input if field.label == "Your French")
    assert field.value == "le chat noir dort"
    assert "The least expected" not in said(app)


def test_before_any_french_is_written_two_words_of_the_models_stand_in_the_english_order() -> None:
    app = opened(text="the black cat sleeps", show="Your own French")
    (picture,) = [e for e in app.get("plotly_chart") if "the word in the text" in e.proto.spec]
    layout = json.loads(picture.proto.spec)["layout"]
    assert layout["yaxis"]["ticktext"][:4] == ["le", "noir", "chat", "dort"]
    assert next(field for field in app.text_input if field.label == "Your French").value == ""
    straight = opened(text="the old house", show="Your own French")  # no words change places
    (picture,) = [e for e in straight.get("plotly_chart") if "the word in the text" in e.proto.spec]
    assert json.loads(picture.proto.spec)["layout"]["yaxis"]["ticktext"][0] == "la"
    assert "The least expected" not in said(straight)


def test_a_link_brings_the_target_and_the_other_views_show_it() -> None:
    linked = {"text": "the black cat sleeps", "target": "le chat blanc dort"}
    app = opened(show="Alignment", **linked)
    app.button(key="encoder-own-target").click().run()
    assert "encoder-own-target" not in [one.key for one in app.button]
    app = opened(show="Your own French", **linked)
    assert "expected is “blanc”" in said(app)
    assert marked(opened(**linked)) == "le chat noir"


def test_unknown_words_are_named_with_words_like_them_and_a_way_on() -> None:
    app = opened(text="the hungry doctr <b>x</b> $y$ *z*")
    assert "“hungry”" in app.error[0].value
    assert re.search("“doctr”, [^.]*“doctor”", said(app))
    assert "**Adjectives:** old, young" in said(app)
    press(app, "Open “the black cat sleeps”")
    assert not app.error
    assert marked(app) == "le chat noir"


def test_a_sentence_of_the_list_and_a_made_up_one_open_with_their_own_french() -> None:
    app = opened(target="le chat")
    press(app, "Make up a sentence")
    assert app.text_area[0].value == made_up(1)
    assert "seed 1" in said(app)
    press(app, "Make up a sentence")
    assert app.text_area[0].value == made_up(2)
    app.selectbox(key="encoder-sentence").set_value("the old house").run()
    assert app.text_area[0].value == "the old house"
    assert not app.exception
    assert not app.error


def test_whoever_comes_with_another_model_finds_the_translator_and_goes_on_with_the_own_text() -> (
    None
):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params["model"] = "stories"
    app.query_params["text"] = text = "Anna King met Sam Gray"
    app.run()
    app.switch_page("pages/encoder_decoder.py").run()
    assert app.text_area[0].value == FIRST
    assert f"“{text}” and Stories" in said(app)
    app.switch_page("pages/home.py").run()
    assert app.text_area[0].value == text


def test_a_sentence_that_the_translator_can_read_comes_along() -> None:
    app = opened(model="stories", text="the old house")
    assert app.text_area[0].value == "the old house"
    assert marked(app) == "la"


def test_another_model_chosen_here_is_told_and_led_to_the_translator() -> None:
    app = opened()
    next(box for box in app.selectbox if box.label == "Model").set_value("stories").run()
    assert "Stories " in said(app)
    assert not app.exception
    press(app, f"Open “{TEXT}” in the translator")
    assert marked(app) == "le médecin fatigué"


def test_the_listed_sentences_translate_as_the_grammar_has_it() -> None:
    model = load_model("translate-en-fr", device="cpu")
    for english, look_for in SENTENCES.items():
        trace = model.trace(english)
        phrase = reference_phrase(source_words(trace))
        as_the_grammar = phrase is not None and phrase.french == target_words(trace)
        assert as_the_grammar or "no reference" in look_for


def test_the_groups_hold_every_word_of_the_translator_and_no_other() -> None:
    held = {
        word
        for groups in (english_groups(), french_groups())
        for w in groups.values()
        for word in w
    }
    assert held == set(words())
    assert unknown("the chat sleeps xyz", english_groups()) == ("chat", "xyz")
    assert near("docter", english_groups())[0] == "doctor"
    assert engine().model("translate-en-fr", lambda *news: None).new_words(" ".join(held)) == ()


def test_the_product_of_many_words_has_the_digits_that_all_of_them_leave() -> None:
    error, words = 3.5e-4, 5
    for share in (0.5, 0.9, 0.97, 0.999):
        said = product_in_words([GivenWord("a", share, "a", share)] * words, error)
        less = share * np.exp(-error)  # the logit of each word lies too high by the error
        unit = 10.0 ** -len(said.partition(".")[2])
        assert abs(float(said) - (less / (less + 1 - share)) ** words) <= 1.5 * unit
        assert unit <= 0.01
    assert product_in_words([GivenWord("a", 0.01, "a", 0.01)] * 40, 1e-2) == "1e−80"


def test_hovering_over_a_word_shows_the_digits_that_single_precision_settles() -> None:
    app = opened(text="black", target="noirs noir", show="Your own French")
    (picture,) = [
        json.loads(e.proto.spec)["data"]
        for e in app.get("plotly_chart")
        if "the word in the text" in e.proto.spec
    ]
    written = picture[0]["hovertext"]
    assert [word.rpartition(": ")[2] for word in written] == ["0.6915", "0.7461", "0.000001"]
