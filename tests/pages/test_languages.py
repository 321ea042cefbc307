"""The languages of a multilingual translator, chosen above a page."""

from model.serving.engine import Request
from tests.model.hub.test_languages import LANGUAGES, TARGET, TEXT, fed_by_the_library, saved
from tests.pages.reading import choose, control, visit
from viz.state.engine import engine


def test_the_languages_that_are_chosen_on_a_page_are_read_and_stand_in_the_link() -> None:
    source, target, other = LANGUAGES["nllb"]
    app = visit("home", model=str(saved("nllb")), text=TEXT, target=TARGET)
    assert (control(app, "From").value, control(app, "Into").value) == (source, target)
    choose(app, "Into", other)
    assert app.query_params["languages"] == f"{source} {other}"
    request = Request(str(saved("nllb")), TEXT, TARGET, languages=(source, other))
    assert engine().has(request.model)
    trace = engine().trace(request, lambda place: None)
    read = [token.id for token in trace.tokens], [token.id for token in trace.target_tokens]
    assert read == fed_by_the_library("nllb", source, other)


def test_a_link_with_languages_that_the_model_does_not_know_opens_without_them() -> None:
    app = visit("home", model=str(saved("nllb")), text=TEXT, languages="eng_Latn xx")
    assert control(app, "Into").value == LANGUAGES["nllb"][1]
