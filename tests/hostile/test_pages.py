"""Every view of every page, on a model whose tokens are attacks: what it sends to the browser is text."""

from pathlib import PurePath

import pytest

from tests.cases import cases
from tests.hostile.attacks import SHORT
from tests.hostile.hostile_models import hostile_folder
from tests.hostile.sinks import escaped_wrongly, sent, unsafe_cells
from tests.pages.test_every_view import views
from viz.state.navigation import PAGES

TEXT = " ".join(SHORT) + " the cat"
WITHOUT = (
    "worked_examples", "training", "library", "experiments", "papers", "for_a_class", "corpus",
)  # fmt: skip


@pytest.mark.slow
@cases("page", [PurePath(page.file).stem for page in PAGES])
def test_a_page_shows_attacks_as_text(page) -> None:
    family = "bart" if page == "encoder_decoder" else "llama"
    given = {"text": TEXT, "model": str(hostile_folder(family)), "hidden": "3,5"}
    shown = False
    for view, app in views(page, **given):
        assert not app.exception, view
        assert escaped_wrongly(app) == [], view
        assert unsafe_cells(app) == [], view
        shown = shown or any("hx" in text for _, text in sent(app))
        boxes = [box for box in app.text_area if box.label == "Your sentence"]
        assert all(box.value == TEXT for box in boxes), view
    assert shown or page in WITHOUT, "the page shows no token at all"
