"""Models of the hub on the page: offered with their size, downloaded, stopped, opened, refused; and
the heads of real weights where they are known to be."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from model.download.entries import fetched
from model.download.wheel import cache_folder
from model.loading.registry import models
from tests.browser.conftest import wait_until_settled
from tests.model.hub_models import saved
from tests.model.hub_server import Hub, serving
from tests.server import serving as served

REAL = ("minilm", "smollm2-135m-instruct")
TINY, REFUSED = "somebody/tiny-llama", "somebody/tiny-mamba"
FETCHED = "somebody/tiny-bert"  # behind the page, when the server starts
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("hub")]  # one worker, one server


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serving({TINY: saved("llama"), REFUSED: saved("mamba"), FETCHED: saved("bert")}) as server:
        yield server


@pytest.fixture(scope="module")
def server(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose hub is on this computer, with a cache that holds the real weights only."""
    for name in REAL:
        fetched(models[name], lambda *news: None)
    cache, log = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("log") / "server.log"
    for name in REAL:
        (cache / name).symlink_to(cache_folder(name))
    more = {
        "HF_ENDPOINT": hub.address,
        "HF_HUB_OFFLINE": "0",
        "ATTENTION_CACHE": str(cache),
        "ATTENTION_FETCH": FETCHED,
    }
    with served(log, more=more) as started:
        yield started.address


def offered(page: Page, name: str) -> Locator:
    """The button that brings a model, once the picker has looked it up."""
    box = page.get_by_label("Or enter any other hub id, a folder, or a trace file")
    wait_until_settled(page)
    if not box.is_visible():
        page.get_by_text("Other models", exact=True).click()
    box.fill(name)
    box.press("Enter")
    return page.get_by_role("button", name="Download and open")


def drawn(page: Page) -> NDArray[np.float64]:
    """(query, key): the weights that Plotly draws, what is not allowed as 0."""
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true", timeout=150_000)
    rows = explorer.locator(".figure > .plotly").evaluate(
        "plot => Array.from(plot._fullData[0].z, row => Array.from(row))"
    )
    return np.nan_to_num(np.array(rows, dtype=float))


def test_a_model_is_sized_stopped_resumed_opened_and_a_refused_one_leaves_it_there(
    open_page: Callable[..., Page], hub: Hub
) -> None:
    page = open_page("/")
    hub.slowly = 3.0
    button = offered(page, TINY)
    expect(button).to_be_visible()
    size = sum(path.stat().st_size for path in saved("llama").iterdir()) / 1e3
    expect(page.get_by_text("To be downloaded from the hub")).to_contain_text(f"{size:,.1f} kB")
    button.click()
    page.locator(".st-key-picker-stop").get_by_role(
        "button"
    ).click()  # the model behind has one too
    expect(page.get_by_text("it resumes from there")).to_be_visible()
    assert "model=" not in page.url  # the page has stayed with its model
    hub.slowly = 0.0
    button.click()
    page.wait_for_url("**model=somebody**")
    expect(page.get_by_test_id("head-5")).to_be_attached()
    assert np.allclose(drawn(page).sum(1), 1, atol=1e-4)
    offered(page, REFUSED).click()
    expect(page.get_by_text("it has no attention")).to_be_visible()
    assert "tiny-llama" in page.url
    expect(page.get_by_test_id("head-5")).to_be_attached()


def test_home_offers_what_was_fetched_behind_it_and_the_browser_keeps_the_choice(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/", on=fresh_page())
    # The line stands below the picture, which moves it until it is drawn.
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    page.get_by_role("button", name=f"Open {FETCHED}").click()
    page.wait_for_url("**model=somebody**")
    again = page.context.new_page()
    again.goto("/")
    again.wait_for_url("**model=somebody**")
    again.goto("/?head=3")  # a link says all of a view, the model too
    expect(again.get_by_text("House GPT is good for")).to_be_visible()


def test_a_folder_opens_by_its_path_and_a_wrong_name_is_told(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page("/")
    offered(page, "nonsense")
    expect(page.get_by_text("is neither a folder on this server")).to_be_visible()
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    offered(page, str(tmp_path))
    page.get_by_role("button", name="Open it", exact=True).click()
    expect(page.get_by_text("are missing")).to_be_visible()
    offered(page, str(saved("bert")))
    page.get_by_role("button", name="Open it", exact=True).click()
    page.wait_for_url("**model=**bert**")
    assert np.allclose(drawn(page).sum(1), 1, atol=1e-4)
