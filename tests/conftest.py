"""What holds for every test: no network, no chance, and CUDA tests only where there is CUDA."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the hub's library is first imported
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("house", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, by name, the tests that need a device this machine does not have."""
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test starts from the same random state, whatever ran before it."""
    torch.manual_seed(0)
