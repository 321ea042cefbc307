"""What holds for every test: no network, no chance, and CUDA tests only where there is CUDA.

PyTorch and Streamlit are imported by the first test that needs them: tests/laws does not.
"""

import logging
import os
import random
from collections.abc import Generator, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the hub's library is first imported
os.environ["ATTENTION_FETCH"] = "none"  # a server that starts downloads nothing
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# The smallest bounds with which SmolLM2 opens: each worker is a process, and a laptop runs six of them.
os.environ.setdefault("ATTENTION_MODEL_MB", "600")
os.environ.setdefault("ATTENTION_TRACE_MB", "300")

from tests import shapes as shapes  # checks the modules that are imported from here on

# isort: split
import hypothesis
import pytest

from deploy.wheel import build_wheel
from tests import once, one_server, scheduling, times, worker_memory

worker_memory.return_large_tables()
hypothesis.settings.register_profile("house", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (once, one_server, times):
        config.pluginmanager.register(plugin, plugin.__name__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first, so that at the end no worker waits for one of them: those that share a cluster
    or a large model. ATTENTION_TEST_ORDER, any word, shuffles them all instead. Leave out, by name, the tests
    that need a device this machine does not have."""
    if seed := os.environ.get("ATTENTION_TEST_ORDER"):
        random.Random(seed).shuffle(items)
    else:
        items.sort(
            key=lambda item: (not item.get_closest_marker("xdist_group"), -longest_time(item))
        )
    on_cuda = [item for item in items if item.get_closest_marker("cuda")]
    if not on_cuda or import_module("torch").cuda.is_available():
        return
    for item in on_cuda:
        item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def longest_time(item: pytest.Item) -> float:
    """The seconds that a test asks for beyond the usual; 0 where it asks for none."""
    return max((mark.args[0] for mark in item.iter_markers("timeout")), default=0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Marks skip a test. One that skips itself, or one of its cases, fails: nobody would see it."""
    report = yield
    if call.when == "call" and call.excinfo and call.excinfo.errisinstance(pytest.skip.Exception):
        report.outcome, report.longrepr = "failed", f"skipped while it ran: {call.excinfo.value}"
    return report


@pytest.fixture
def subtests(subtests: pytest.Subtests) -> Iterator[pytest.Subtests]:
    """No case is no test."""
    with patch.object(subtests, "test", wraps=subtests.test) as test:
        yield subtests
    assert test.called, "no case is no test"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.ByFile | None:
    """A file to one process. In the order of the items, not of the number of tests in a file."""
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return scheduling.ByFile(config, log)


@pytest.fixture(autouse=True, scope="session")
def looked_for_components_once() -> Iterator[None]:
    """An app that starts looks through every installed package for components, which takes longer than
    most tests: here the first one looks for all."""
    manifest_scanner = import_module("streamlit.components.v2.manifest_scanner")
    look = manifest_scanner.scan_component_manifests
    manifest_scanner.scan_component_manifests = cache(look)
    yield
    manifest_scanner.scan_component_manifests = look


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel of this tree, built once a run."""
    (built,) = once.once("wheel", lambda folder: build_wheel(str(folder))).iterdir()
    return built


@pytest.fixture(scope="session")
def ray_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder with Ray's token: a process reads it once, so all clusters of a worker share it."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def models_are_forgotten() -> Iterator[None]:
    """Where a worker grows: the tests of one file would else keep all the models that they open."""
    yield
    if worker_memory.grows():
        worker_memory.forget_models()


@pytest.fixture(autouse=True, scope="module")
def worker_stays_small() -> Iterator[None]:
    """A laptop of 16 GB has room for six processes, whatever each has tested before."""
    yield
    if worker_memory.megabytes() > worker_memory.LARGE:
        worker_memory.forget_models()
    assert worker_memory.megabytes() <= worker_memory.MOST


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test starts from the same random state, whatever ran before it."""
    import_module("torch").manual_seed(0)


@pytest.fixture(autouse=True)
def pages_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for the passes that it begins, however long they take: no browser asks again here."""
    monkeypatch.setattr("viz.shell.background.AT_FIRST", None)


@pytest.fixture(autouse=True)
def broken_parts() -> Iterator[list[str]]:
    """The kinds of exceptions that a page told as mistakes of ours; at the end there must be none.

    The pages catch them at `viz.elements.error_boundary`, so that a test would not notice. One that
    provokes such an exception looks at the list and clears it.
    """
    broken: list[str] = []
    listener = logging.Handler(logging.ERROR)
    listener.emit = lambda record: (  # type: ignore[method-assign]
        broken.append(type(record.exc_info[1]).__name__) if record.exc_info else None
    )
    logging.getLogger("attention").addHandler(listener)
    yield broken
    logging.getLogger("attention").removeHandler(listener)
    assert broken == []
