"""Every page, opened on a model whose tokens are attacks: what it sends to the browser is text."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.hostile.attacks import SHORT
from tests.hostile.hostile_models import hostile_folder
from tests.hostile.sinks import escaped_wrongly, sent, unsafe_cells
from viz.state.menu import PAGES

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = " ".join(SHORT) + " the cat"
VIEWS = [  # the pages as they open, and the views that show more of the tokens
    *((page.file, "") for page in PAGES),
    ("pages/all_heads.py", "Averages and rollout"),
    ("pages/all_heads.py", "From word to word"),
    ("pages/for_a_class.py", "Exercises"),
    ("pages/tokens.py", "Step by step"),
    ("pages/tokens.py", "As a chat"),
    ("pages/tokens.py", "Windows"),
    ("pages/tokens.py", "Nearest tokens"),
    ("pages/laboratory.py", "Every position"),
    ("pages/laboratory.py", "Rows of weights"),
    ("pages/layer_norm.py", "RMS norm beside it"),
    ("pages/feed_forward.py", "Contributions"),
    ("pages/feed_forward.py", "Dropout"),
    ("pages/prediction.py", "Layer by layer"),
    ("pages/prediction.py", "Token by token"),
]
WITHOUT = {
    "pages/worked_examples.py",
    "pages/glossary.py",
    "pages/training.py",
    "pages/examples.py",
    "pages/for_a_class.py",
    "pages/corpus.py",
}


@pytest.mark.parametrize(("file", "show"), VIEWS)
def test_a_page_shows_attacks_as_text(file: str, show: str) -> None:
    family = "bart" if file == "pages/encoder_decoder.py" else "llama"
    app = AppTest.from_file(str(REPOSITORY / file), default_timeout=60)
    given = {"text": TEXT, "model": str(hostile_folder(family)), "show": show, "hidden": "3,5"}
    for name, value in given.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert escaped_wrongly(app) == []
    assert unsafe_cells(app) == []
    if file not in WITHOUT:
        assert any("hx" in text for _, text in sent(app)), "the page shows no token at all"
    boxes = [box for box in app.text_area if box.label == "Your sentence"]
    assert all(box.value == TEXT for box in boxes)
