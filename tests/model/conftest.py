"""The models that the laws are held on: tiny ones of every shape, and two trained ones."""

from functools import cache, partial
from itertools import product
from types import SimpleNamespace

import pytest
import torch

from model import Trace
from tests.model.tiny import MODELS, loaded, sentence, target

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Every device that this machine has."""
    name: str = request.param
    return name


@pytest.fixture
def model(subtests: pytest.Subtests) -> pytest.Subtests:
    """Every model, or those of the mark `models`, one after the other (below)."""
    return subtests


@pytest.fixture
def trace(subtests: pytest.Subtests) -> pytest.Subtests:
    """Everything that one unchanged pass of each of these models leaves behind."""
    return subtests


@cache
def traced(name: str, device: str) -> Trace:
    one = loaded(name, device)
    return one.trace(sentence(one), target(one), record="full")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Calls a test of models with each of them, as subtests. So it is one item, and all share the passes."""
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    subtests = pyfuncitem.funcargs.get("subtests")
    wanted = [name for name in ("model", "trace") if name in given and given[name] is subtests]
    if not wanted:
        return None
    assert isinstance(subtests, pytest.Subtests)
    mark = pyfuncitem.get_closest_marker("models")
    names, load = (mark.args[0], mark.kwargs.get("of", loaded)) if mark else (MODELS, loaded)
    for name, place in product(names, DEVICES):
        where = f"{name} on {place}"
        with subtests.test(model=where), pytest.MonkeyPatch.context() as patch:
            torch.manual_seed(0)
            own = {"subtests": SimpleNamespace(test=partial(subtests.test, model=where))}
            own |= {"monkeypatch": patch}
            own |= {"model": load(name, place)} if "model" in wanted else {}
            own |= {"trace": traced(name, place)} if "trace" in wanted else {}
            pyfuncitem.obj(**given | {name: own[name] for name in given if name in own})
    return True
