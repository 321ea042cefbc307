"""Results of papers in a real browser: a claim is asked, and found by its author."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from model.papers.claims import HOLDS, NOT_ASKED, claims


def test_claims_are_asked_on_their_cards_and_found_by_their_authors(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/papers", model="induction")
    expect(page.locator(".paper")).to_have_count(len(claims()))
    for name, verdict in (("previous-token", HOLDS), ("greater-than", NOT_ASKED)):
        card = page.locator(f".st-key-paper-{name}")
        expect(card.locator(".verdict")).to_have_count(0)
        card.get_by_role("button", name="Ask this model").click()
        expect(card.locator(".verdict")).to_contain_text(verdict)
        expect(card.get_by_role("button", name="Ask this model")).to_have_count(0)
    expect(page.get_by_text("1 holds, 0 do not hold, 1 cannot be asked")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("McDougall")
    page.get_by_role("option", name=re.compile("Copy suppression")).click()
    expect(page).to_have_url(re.compile("paper=copy-suppression"))
    expect(page.locator(".paper h3").first).to_contain_text("Copy suppression")
    answered = page.locator(".st-key-paper-previous-token .verdict")
    expect(answered).to_contain_text(HOLDS)  # it is the same process, and the same visitor
