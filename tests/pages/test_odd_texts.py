"""Texts that could break a view: each view of the pages that draw what a text consists of."""

import pytest

from model.loading.registry import models
from model.run.tokenizers import Words
from tests.pages.reading import ODD_TEXTS, choose, own, said, visit
from viz.views.norms.views import VIEWS

PAGES = {
    "feed_forward": ("Neurons", "On the curve", "Contributions", "Gradient by depth", "Dropout"),
    "layer_norm": tuple(VIEWS),
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
@pytest.mark.parametrize("model", sorted(models))
def test_no_text_breaks_a_view(model: str, text: str, page: str) -> None:
    app = visit(page, model=model, text=text)
    tokenizer = own(model).tokenizer
    refused = isinstance(tokenizer, Words) and bool(own(model).new_words(text))
    assert bool(app.error) is refused  # a closed vocabulary refuses other words in a sentence
    if refused:
        assert "does not know" in said(app)
    for view in () if refused else PAGES[page]:
        choose(app, "Show", view)
        assert "nan" not in said(app)
