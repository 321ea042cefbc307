"""The chosen cell: of a sentence of one's own it is the last word's largest weight, until another is
chosen."""

import numpy as np
from streamlit.testing.v1 import AppTest

from model import Trace
from model.analysis.run_comparison import is_word
from tests.cases import cases
from tests.pages.reading import visit
from viz.state.engine import engine
from viz.state.link import View, from_link, to_link
from viz.state.navigation import HOME, PAGES
from viz.views.experiments.experiments import FILE as CARDS

OWN = "Anna saw the red ball near the river and took the ball to Tom"


def run_of(view: View) -> Trace:
    return engine().model(view.model, lambda *news: None).trace(view.text)


def largest_of_the_last_word(view: View) -> tuple[int, int]:
    """A mark at the end, as [SEP], is no word."""
    trace = run_of(view)
    attention = trace.find(view.place)
    tokens = trace.queries_of(attention)
    query = max(at for at, token in enumerate(tokens) if is_word(token))
    return query, int(np.argmax(attention.weights(view.head)[query]))


def view_of(app: AppTest) -> View:
    assert not app.exception
    view: View = app.session_state["view"]
    return view


@cases("page", [page.file for page in PAGES if page.reads and not page.lends])
def test_a_link_with_a_sentence_alone_opens_at_the_last_word(page) -> None:
    shown = {"show": "Patch"} if page == CARDS else {}  # the cards read nothing
    view = view_of(visit(page, text=OWN, **shown))
    assert view.cell == largest_of_the_last_word(view)


def test_a_page_that_reads_nothing_leaves_the_choice_to_the_page_that_opens_its_link() -> None:
    for page in [CARDS, "pages/library.py"]:
        link = {name: str(value) for name, value in visit(page, text=OWN).query_params.items()}
        view = view_of(visit(HOME, **link))
        assert view.cell == largest_of_the_last_word(view)


@cases("model, place", [("minilm", "encoder.3.self"), ("stories", "decoder.0.self")])
def test_so_does_another_model(model, place) -> None:
    view = view_of(visit("pages/home.py", model=model, place=place))
    assert view.cell == largest_of_the_last_word(view)


def test_a_typed_sentence_has_a_cell_of_its_own_and_a_chosen_cell_stays() -> None:
    app = visit("pages/home.py", head="3")
    assert view_of(app).cell == View().cell
    (box,) = [box for box in app.text_area if box.label == "Your sentence"]
    box.set_value(OWN).run()
    assert view_of(app).cell == largest_of_the_last_word(view_of(app)) != View().cell
    chosen = visit("pages/home.py", text=OWN, query="4", key="2")
    assert view_of(chosen).cell == (4, 2)
    chosen.run()
    assert view_of(chosen).cell == (4, 2)


@cases("page", [HOME, "pages/home.py"])
def test_a_link_says_a_cell_that_was_chosen_even_where_it_is_that_of_the_first_sentence(
    page,
) -> None:
    own = View(text=OWN)
    assert from_link(to_link(own)) == (own, ())
    view = view_of(visit(page, **to_link(own)))
    assert view.cell == own.cell != largest_of_the_last_word(own)
