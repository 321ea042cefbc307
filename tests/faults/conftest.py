"""What the tests of faults share: an engine that remembers nothing, and a disk that is full."""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from viz.state.engine import forget_engine

REPOSITORY = Path(__file__).resolve().parents[2]
TYPED = "Anna saw the red bag"


@pytest.fixture
def fresh_engine() -> Iterator[None]:
    """Models are loaded anew, and those of this test are forgotten after it."""
    forget_engine()
    yield
    forget_engine()


@pytest.fixture
def opened(fresh_engine: None) -> Callable[..., AppTest]:
    """Call it with a page and parameters of a link: the page, as a visitor finds it."""

    def open_(file: str, **parameters: str) -> AppTest:
        app = AppTest.from_file(str(REPOSITORY / file), default_timeout=120)
        for name, value in {"text": TYPED, **parameters}.items():
            app.query_params[name] = value
        return app.run()

    return open_


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """Call it with a number of bytes: within it, no file of this process or of one that it starts
    grows beyond them. The system refuses the write itself, as on a disk without room. What is imported
    meanwhile is not kept compiled: Python would keep the half that found room, for every later test."""

    @contextmanager
    def full(most: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            yield
        finally:
            sys.dont_write_bytecode = kept
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return full


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing can be made, whoever asks."""
    if os.geteuid() == 0:
        yield Path("/sys/kernel")  # where not even root makes a folder
        return
    folder = tmp_path / "unwritable"
    folder.mkdir(mode=0o500)
    yield folder
    folder.chmod(0o700)


def told(app: AppTest) -> str:
    """All errors on a page, as the visitor reads them; none of them is a stack trace."""
    assert not app.exception
    return " ".join(error.value.replace("\\", "") for error in app.error)


def typed(app: AppTest) -> str:
    """What stands in the sentence box."""
    text: str = next(box.value for box in app.text_area if box.label == "Your sentence")
    return text
