"""The models that the laws are held on: tiny ones of every shape, and two trained ones."""

import pytest
import torch

from model import Model, Trace
from tests.model.tiny import MODELS, loaded, sentence, target

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Every device that this machine has."""
    name: str = request.param
    return name


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, device: str) -> Model:
    """Every model, or those that a test names with `indirect=True`."""
    return loaded(request.param, device)


@pytest.fixture
def trace(model: Model) -> Trace:
    """Everything that one unchanged pass leaves behind."""
    return model.trace(sentence(model), target(model), record="full")
