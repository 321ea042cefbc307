"""The models that the laws are held on: tiny ones of every shape, and two trained ones."""

from functools import cache
from itertools import product

import pytest
import torch

from model import Trace
from tests.cases import anew
from tests.model.tiny import MODELS, loaded, sentence, target

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Every device that this machine has."""
    name: str = request.param
    return name


@pytest.fixture
def model() -> None:
    """Every model, or those of the mark `models`, one after the other (below)."""


@pytest.fixture
def trace() -> None:
    """Everything that one unchanged pass of each of these models leaves behind."""


@cache
def traced(name: str, device: str) -> Trace:
    one = loaded(name, device)
    return one.trace(sentence(one), target(one), record="full")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Calls a test of models with each of them. So it is one item, and all share the passes."""
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    wanted = [name for name in ("model", "trace") if given.get(name, "") is None]
    if not wanted:
        return None
    mark = pyfuncitem.get_closest_marker("models")
    names, load = (mark.args[0], mark.kwargs.get("of", loaded)) if mark else (MODELS, loaded)
    assert names
    for number, (name, place) in enumerate(product(names, DEVICES)):
        torch.manual_seed(0)
        try:
            made = {"model": load(name, place)} if "model" in wanted else {}
            made |= {"trace": traced(name, place)} if "trace" in wanted else {}
            with pytest.MonkeyPatch.context() as patch:
                pyfuncitem.obj(**anew(given, number, patch) | made)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"where the model is {name!r} on {place!r}")
            raise
    return True
