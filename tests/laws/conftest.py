"""The laws are read off the sources. They need neither PyTorch nor Streamlit; nothing here imports them."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def looked_for_components_once() -> None:
    """Nothing looks for components."""


@pytest.fixture(autouse=True)
def models_are_forgotten() -> None:
    """No model is opened."""


@pytest.fixture(autouse=True, scope="module")
def worker_stays_small() -> None:
    """Nothing large is made."""


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Nothing is drawn by chance."""


@pytest.fixture(autouse=True)
def pages_come_to_rest() -> None:
    """No page is opened."""
