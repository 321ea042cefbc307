"""The app with its models on a cluster. `make browser-cluster` does so for all tests. Here are its first
steps, and what happens when a model's process dies under a visitor."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from model import load_model
from tests.browser.conftest import LOG
from tests.browser.controls import arc_weights, drawn, pick_head
from tests.server import READY, serving
from tools.on_cluster import two_machines
from viz.state.link import View

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("cluster")]  # one worker, one cluster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of an app whose models lie on a cluster of two machines."""
    log = tmp_path_factory.mktemp("cluster") / "server.log"
    before = pytestconfig.stash.get(LOG, log)
    pytestconfig.stash[LOG] = log
    with two_machines() as settings, serving(log, more=settings, until=READY) as started:
        yield started.address
    pytestconfig.stash[LOG] = before


def test_a_visitor_gets_the_models_own_numbers_also_where_its_process_dies(
    open_page: Callable[..., Page],
) -> None:
    expect_weights(open_page("/"), View().text, View().head)
    page = open_page("/")
    pick_head(page, 0)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-head", "0")
    process = process_of_the_model(page)
    os.kill(process, signal.SIGKILL)
    text = "Anna saw a dog and Tom saw Anna"
    expect_weights(open_page("/", text=text, head=1), text, 1)
    assert process_of_the_model(page) != process


def expect_weights(page: Page, text: str, head: int) -> None:
    """The arcs of the chosen token are the model's own weights."""
    weights = load_model("house-gpt").trace(text).find(View().place).weights(head)
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true")
    query = int(explorer.get_attribute("data-query") or "-1")
    assert arc_weights(page) == pytest.approx(drawn(weights[query]), abs=1e-3)


def process_of_the_model(page: Page) -> int:
    """As the owner's page says."""
    page.goto("/owner")
    return int(page.locator("tr", has_text="house-gpt").locator("td").nth(2).inner_text())
