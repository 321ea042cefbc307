"""The way to a page through the menu, for tests and measurements in a browser."""

from playwright.sync_api import Locator, Page, expect

from viz.state.navigation import PLACES, PageEntry

# The seven places, the pages of a place, the blocks of the walk; or Streamlit's own list in their place.
LINKS = ".menu, .st-key-model-map, [data-testid=stSidebarNav]"


def link_to(page: Page, entry: PageEntry) -> Locator:
    """The link that leads to a page of the app; its place is opened first where the open page has none.

    Raises LookupError where there is no link to its place.
    """
    path = f"/{entry.address}"
    link = page.locator(LINKS).locator(f'a[href$="{path}"], a[href^="{path}?"]').first
    if not link.count():
        first = next(pages[0] for pages in PLACES.values() if entry in pages)
        if first is entry:
            raise LookupError(f"No link leads to {path}.")
        link_to(page, first).press("Enter")
        expect(link).to_be_visible()
    return link
