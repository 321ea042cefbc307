"""Results of papers in a real browser: what a model answered beforehand stands there, and is found by its
author."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from model.papers.stored import read_stored


def test_answers_stand_on_their_cards_and_are_found_by_their_authors(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/papers", model="induction")
    _, stored = read_stored()["induction"]
    expect(page.locator(".paper")).to_have_count(len(stored))
    for one, card in zip(stored, page.locator(".paper").all(), strict=True):
        expect(card.locator(".verdict")).to_contain_text(one.verdict)
    card = page.locator(".paper").first
    expect(card.get_by_text(stored[0].reason)).to_be_hidden()
    card.get_by_text("How it is asked").click()
    expect(card.get_by_text(stored[0].reason)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("McDougall")
    page.get_by_role("option", name=re.compile("Copy suppression")).click()
    expect(page).to_have_url(re.compile("paper=copy-suppression"))
    expect(page.locator(".paper h3").first).to_contain_text("Copy suppression")
