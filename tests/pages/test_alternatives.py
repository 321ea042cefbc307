"""What is offered where a model cannot do what is asked: a model that can."""

from itertools import product

import pytest
from streamlit.testing.v1 import AppTest

from model.download.entries import ENTRIES, HUB_ENTRIES
from tests.pages.reading import named, visit
from viz.state.engine import engine

pytestmark = pytest.mark.slow

HOUSE, SMOLLM2, MINILM = "House GPT", "SmolLM2-135M-Instruct", "MiniLM"
ANIMAL = "The animal didn't cross the street because it was too tired"  # words that Stories lacks
ZEBRA = "A quantum zebra"  # words that House GPT lacks too


def offers(app: AppTest) -> list[str]:
    labels = [button.label.replace("\\", "") for button in app.button]
    return [label for label in labels if label.startswith("Read it with")]


def new_words(app: AppTest) -> list[str]:
    return [one.value for one in app.caption if "does not know" in one.value]


def test_a_language_model_that_knows_the_words_is_offered(subtests: pytest.Subtests) -> None:
    for page, (model, text, offered) in product(
        ["prediction", "home"],
        [
            ("stories", ANIMAL, HOUSE),
            ("stories", ZEBRA, SMOLLM2),
            ("house-gpt", ZEBRA, SMOLLM2),
            ("induction", ANIMAL, HOUSE),
        ],
    ):
        with subtests.test(page=page, model=model, text=text, offered=offered):
            (offer,) = offers(visit(page, model=model, text=text))
            assert offered in offer


def test_an_encoder_that_lacks_a_word_says_so_and_offers_one_that_has_it() -> None:
    app = visit("home", model="minilm", text="a 😀")
    (told,) = new_words(app)
    assert "😀" in told
    assert "byte" not in told
    (offer,) = offers(app)
    assert SMOLLM2 in offer


def test_a_page_of_predictions_reads_an_encoders_sentence_with_a_model_that_predicts() -> None:
    app = visit("prediction", model="minilm", text=ANIMAL)
    assert offers(app) == []
    assert any(HOUSE in one.value for one in (*app.caption, *app.info, *app.markdown))


def test_where_no_other_model_may_be_opened_only_pages_that_predict_nothing_offer_the_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATTENTION_MODELS", "gpt2")
    (offer,) = offers(visit("home", model="stories", text=ZEBRA))
    assert MINILM in offer
    assert offers(visit("prediction", model="stories", text=ZEBRA)) == []
    assert offers(visit("prediction", model="minilm", text=ZEBRA)) == []


def test_the_offer_opens_the_model_on_the_same_sentence() -> None:
    app = visit("prediction", model="stories", text=ANIMAL)
    next(one for one in app.button if one.label.startswith("Read it with")).click().run()
    assert named(app.selectbox, "choose-model").value == "house-gpt"
    assert app.text_area[0].value == ANIMAL
    assert offers(app) == []


def test_one_new_word_is_one_and_a_character_of_several_tokens_is_written_whole() -> None:
    (told,) = new_words(visit("home", model="house-gpt", text="the quantum"))
    assert "reads it byte" in told
    (told,) = new_words(visit("home", model="house-gpt", text="你好"))
    assert "“你”\\, “好”" in told
    assert "reads them byte" in told


def test_a_model_that_is_said_to_read_all_has_no_new_word() -> None:
    (name,) = [entry.name for entry in (*ENTRIES, *HUB_ENTRIES) if entry.reads_all]
    model = engine().model(name, lambda sentence, share: None)
    assert model.new_words("zebra 你好 😀 \x00 hé") == ()
