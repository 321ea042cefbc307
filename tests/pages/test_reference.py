"""A sentence with “it”: the way to the model whose head finds what the word stands for."""

import numpy as np

from tests.cases import cases
from tests.pages.reading import said, visit
from viz.state.engine import engine
from viz.state.link import View
from viz.state.presets import EXAMPLES, reference_example

CAT = "The cat sat on the mat because it was tired"
OFFER = "What does “it” stand for? MiniLM-L6 has a head that looks for it."


@cases("page", ["home"])
def test_the_way_leads_to_the_row_of_the_word_and_its_largest_weight(page) -> None:
    app = visit(page, text=CAT)
    assert OFFER in said(app)
    app.button(key="offer-reference").click().run()
    view: View = app.session_state["view"]
    assert (view.text, view.model) == (CAT, "minilm")
    trace = engine().model("minilm", lambda *news: None).trace(CAT)
    assert trace.tokens[view.query].text == "it"
    row = trace.find(view.place).weights(view.head)[view.query]
    assert view.key == int(np.argmax(row))
    assert trace.tokens[view.key].text == "cat"
    assert OFFER not in said(app)  # it is open


def test_no_other_sentence_is_offered_it() -> None:
    assert reference_example(View()) is None
    assert reference_example(View(text="It was tired")) is None  # nothing stands before it
    assert reference_example(View(text="the kitten sat in its kit")) is None
    assert reference_example(View(text=CAT, model="minilm")) is None
    for word in ("it", "them"):
        found = reference_example(View(text=f"the keys and {word}"))
        assert found.refers == word
    assert OFFER not in said(visit("home"))


def test_the_word_of_an_example_is_that_of_its_row() -> None:
    for example in EXAMPLES:
        if example.refers:
            view = example.view
            trace = engine().model(view.model, lambda *news: None).trace(view.text)
            assert trace.tokens[view.query].text == example.refers
