"""What on a page cannot be read as it should, found by going through its views at both widths.

`faults` looks at a page as it is; `walk` opens views one after another. It looks at the first view
of a page wide and on a phone, and at all else on a phone, where there is least room. legible.js says what a
fault is.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import show

WIDTHS = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
MAIN = "[data-testid=stMain]"
# The first of these on a page is its first picture.
PICTURE = ", ".join(
    f".st-key-page {picture}"
    for picture in (
        ".js-plotly-plot",
        ".explorer .headline",
        ".player",
        "[data-testid=stDataFrame]",
        "[data-testid=stHtml]:not(:has(.menu))",  # the tokens in boxes
        "canvas",
    )
)
# Pixels from the top at which it begins: below it stand one row of views and one of controls.
LOWEST = {"wide": 340, "phone": 740}
PARTS = f"{MAIN} [data-testid=stTabs] [role=tab]"
WAYS = f"{MAIN} .st-key-ways [role=radio]"
VIEWS = f"{MAIN} [class*=st-key-choose-show]"
IDEA = "The idea, in words"
SWITCHES = f"{MAIN} [data-testid=stButtonGroup]"
STEP = "[class*=st-key-step-] input[aria-label=Step]"
PATIENCE = 20.0  # seconds until what is found counts
MANY = 4  # choices of a kind, more than these, look alike: the longest and the last are enough
STILL = """async () => {
    const main = document.querySelector("[data-testid=stMain]") ?? document.body;
    const places = (root) => [...root.querySelectorAll("*")].map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return [x, y, width, height, one.shadowRoot ? places(one.shadowRoot) : ""].join();
    }).join(";");
    const drawn = (plot) => {
        const svg = plot.querySelector(".main-svg");
        return svg !== null && Math.abs(svg.width.baseVal.value - plot.offsetWidth) < 2;
    };
    const explored = (place) => {  // Streamlit keeps what a run has left out, unseen, until the next run
        const explorer = place.clientWidth ? place.shadowRoot?.querySelector(".explorer") : null;
        return (explorer?.dataset.ready ?? "true") === "true";
    };
    const undone = () => [...[...main.querySelectorAll(".js-plotly-plot")].filter((plot) => !drawn(plot)),
        ...[...main.querySelectorAll("*")].filter((place) => !explored(place))];
    const frame = () => new Promise((seen) => setTimeout(() => requestAnimationFrame(seen), 25));
    const until = performance.now() + 120_000;  // what never rests is named before the test's end
    for (let before = "", same = 0; same < 2; ) {
        const now = places(main), waiting = undone();
        if (performance.now() > until)
            throw new Error(`The page does not rest: ${waiting.map((one) => one.outerHTML.slice(0, 200))}`);
        same = now === before && !waiting.length ? same + 1 : 0;
        before = now;
        await frame();
    }
}"""  # each picture is drawn as wide as its place, some time after that has changed


@dataclass
class Walk:
    """A page that is gone through, and what was found on the way: each fault where it was first met."""

    page: Page
    widths: tuple[str, ...] = tuple(WIDTHS)
    width: str = "wide"
    opens_on: str = ""  # what stands first on the page, as a selector; "": nothing is asked of it
    tops: dict[str, float] = field(default_factory=dict)  # where that begins at each width
    found: dict[str, str] = field(default_factory=dict)
    looked_at: int = 0
    known: set[str] = field(default_factory=set)  # what was gone through on this page
    begins: dict[str, float] = field(
        default_factory=dict
    )  # where the first picture of a view begins

    def is_new(self, what: str) -> bool:
        """Whether this is met for the first time on a page: the same switch stands in several views."""
        new = what not in self.known
        self.known.add(what)
        return new

    def look(self, place: str) -> None:
        """Looks at what is shown now at each width, the phone's last: to turn a page over takes the browser
        longer than to look at it."""
        for width in self.widths:
            self.turn(width)
            self.glance(place)
            if self.opens_on and width not in self.tops:
                self.tops[width] = self.first_top()

    def first_top(self) -> float:
        """Pixels from the top of the page at which begins what the page opens on, once that is seen."""
        first = self.page.locator(self.opens_on).locator("visible=true").first
        expect(first).to_be_visible()
        top = top_of(first)
        assert top is not None
        return top

    def turn(self, width: str) -> None:
        """Gives the page this width."""
        if width != self.width:
            self.page.set_viewport_size(WIDTHS[width])
            self.width = width

    def glance(self, place: str) -> None:
        """Looks at what is shown now, at the width it has."""
        for fault in faults(self.page):
            self.found.setdefault(fault, f"{place}, {self.width}")
        self.looked_at += 1

    def told(self) -> list[str]:
        """Every fault with its place, for a test to show."""
        return [f"{place}: {fault}" for fault, place in self.found.items()]


def faults(page: Page, patience: float = PATIENCE) -> list[str]:
    """What cannot be read on the page as it is now, once nothing moves, and still cannot after some seconds:
    Plotly places a legend some time after all else."""
    page.evaluate(STILL)
    until = time.monotonic() + patience
    while True:
        found: list[str] = page.evaluate(_script())
        if not found or time.monotonic() > until:
            return found
        page.wait_for_timeout(200)


def picture_top(page: Page) -> float | None:
    """Pixels from the top of the page at which its first picture begins; None where there is none."""
    first = page.locator(PICTURE).locator("visible=true")
    return top_of(first.first) if first.count() else None


def top_of(place: Locator) -> float | None:
    """Pixels from the top of the page at which a place begins, however far the page is scrolled; None where
    it is not seen."""
    box = place.bounding_box()
    if box is None:
        return None
    scrolled: float = place.page.locator(MAIN).evaluate("main => main.scrollTop")
    return box["y"] + scrolled


def assert_opens_on_its_picture(page: Page) -> None:
    """The open page, wide, has its picture near the top, at the latest some seconds after nothing moves: what
    the view before it showed may still stand there."""
    page.evaluate(STILL)
    until = time.monotonic() + PATIENCE
    while (top := picture_top(page)) is None or top > LOWEST["wide"]:
        assert time.monotonic() < until, top
        page.wait_for_timeout(100)


def walk(on: Walk, title: str, *, beats: bool = True, switches: bool = True) -> None:
    """All views of the open page, on the visitor's sentence and on tiny numbers, and its idea. beats: also
    what shows no model. switches: also the explorer's stages, and what else can be chosen among a few."""
    on.known.clear()
    parts, ways = on.page.locator(PARTS), on.page.locator(WAYS)
    if not ways.count():
        for at in reversed(range(parts.count() or 1)):
            name = _open_nth(on, parts, at, title) if parts.count() else title
            _views(on, name, switches=switches)
        return
    _views(on, f"{title} · {ways.nth(0).inner_text()}", switches=switches)
    if not beats:
        return
    by_hand = _open_nth(on, ways, 1, title)
    on.look(by_hand)
    _steps(on, by_hand)
    on.page.get_by_text(IDEA).click()
    wait_until_settled(on.page)
    on.look(f"{title} · {IDEA}")


def _open_nth(on: Walk, places: Locator, at: int, title: str) -> str:
    places.nth(at).click()
    wait_until_settled(on.page)
    return f"{title} · {places.nth(at).inner_text()}"


def _views(on: Walk, title: str, *, switches: bool) -> None:
    """Each view of a page, and one after another what each of its switches can show."""
    views = _names(on)
    if not views:
        on.look(title)
        _stages(on, title)
        _switches(on, title, set(), switches=switches)
        return
    for at, view in enumerate(views):
        if at:
            show(on.page, view)
            wait_until_settled(on.page)
        name = f"{title} · {view}"
        on.glance(name) if at else on.look(name)
        if (top := picture_top(on.page)) is not None:
            on.begins[name] = top
        if switches:
            _stages(on, name)
            _switches(on, name, set(views), switches=True)


def _names(on: Walk) -> list[str]:
    """The views of the page, in a list or side by side."""
    row = on.page.locator(VIEWS)
    if not row.count():
        return []
    side_by_side = row.get_by_role("radio").all_inner_texts()
    if side_by_side:
        return side_by_side
    row.get_by_role("combobox").click()
    names = on.page.get_by_role("option").all_inner_texts()
    on.page.keyboard.press("Escape")
    return names


def _switches(on: Walk, name: str, views: set[str], *, switches: bool) -> None:
    """What else can be chosen among a few. views: those of the page, which were chosen before."""
    for row in on.page.locator(SWITCHES).all() if switches else ():
        if (
            not row.count()
            or row.locator("xpath=ancestor::*[contains(@class, 'st-key-ways')]").count()
        ):
            continue
        if set(row.get_by_role("radio").all_inner_texts()) <= views:
            continue
        if on.is_new(row.inner_text()):
            for choice in _to_open(row):
                on.glance(f"{name} · {_open(on, choice)}")


def _stages(on: Walk, name: str) -> None:
    """The stages of the explorer, where it is shown, with all that is derived of a cell."""
    for stage in on.page.get_by_test_id(re.compile("^stage-")).all():
        if not on.is_new(stage.inner_text()):
            return
        stage.click()
        on.glance(f"{name} · {stage.inner_text()}")


def _steps(on: Walk, name: str) -> None:
    """The steps of the worked example that stands there, each at the width that the page has."""
    further = on.page.get_by_role("button", name="Next →")
    while further.count() and further.is_enabled():
        further.click()
        wait_until_settled(on.page)
        on.glance(f"{name} · {on.page.locator(STEP).input_value()}")


def _to_open(row: Locator) -> list[Locator]:
    """The choices of a switch that show something else than what is open."""
    others = list(_choices(row))[1:]
    return others if len(others) < MANY else [max(others, key=_length), others[-1]]


def _length(choice: Locator) -> int:
    return len(choice.inner_text())


def _choices(row: Locator) -> Iterator[Locator]:
    choices = row.get_by_role("radio")
    for at in range(choices.count()):
        yield choices.nth(at)


def _open(on: Walk, choice: Locator) -> str:
    choice.click()
    wait_until_settled(on.page)
    return choice.inner_text()


@cache
def _script() -> str:
    folder = Path(__file__).parent
    letters, faults = (
        (folder / f"{name}.js").read_text("utf-8") for name in ("legible_letters", "legible")
    )
    return f"(() => {{ const letters = (\n{letters}); return (\n{faults}); }})()"
