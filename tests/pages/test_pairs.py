"""A pair of sentences on a page."""

from tests.model.hub.test_pairs import FIRST, SECOND, saved
from tests.model.hub_models import saved as saved_family
from tests.pages.reading import said, visit


def test_the_page_of_tokens_says_how_a_pair_is_written_where_a_model_reads_them() -> None:
    hint = "Write [SEP] between two sentences"
    app = visit("tokens", model=str(saved("bert")), text=f"{FIRST} [SEP] {SECOND}")
    assert hint in said(app)
    assert "between two sentences" not in said(
        visit("tokens", model=str(saved_family("roberta")), text=FIRST)
    )
