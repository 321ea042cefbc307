"""Nothing on a page is cut off or on other letters with other models than House GPT: the views that differ.

Apart from test_legible.py, so that two workers share the walks.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.legible import Walk, walk

# Stories has the views of House GPT, with fewer heads: test_legible.py walks those.
MODELS = ("translate-en-fr", "induction", "minilm", "smollm2-135m-instruct")
WITH_A_MODEL = (
    "attention",
    "all_heads",
    "laboratory",
    "tokens",
    "positions",
    "layer_norm",
    "feed_forward",
    "prediction",
    "shapes_and_cost",
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("model", MODELS)
def test_every_view_of_a_model_can_be_read(
    page: Page, open_page: Callable[..., Page], model: str
) -> None:
    on = Walk(page)
    for address in WITH_A_MODEL:
        open_page(f"/{address}", model=model)
        walk(on, address, beats=False, switches=address == "laboratory")
    assert on.told() == []
