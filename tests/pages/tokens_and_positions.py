"""A view of the pages on tokens and positions."""

from streamlit.testing.v1 import AppTest

from tests.pages.reading import visit


def opened(page: str, view: str, **parameters: str) -> AppTest:
    given = {"model": "stories", "text": "the cat saw the cat", "show": view}
    return visit(page, **given | parameters)
