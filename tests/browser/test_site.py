"""The site in a browser, from a disk and without a network: all that is chosen on its pages, and nothing
asked of anybody."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests import chromium
from tests.accessibility import look
from viz.site.build import write_lesson, write_site
from viz.site.course import Course, read_course

TITLES = {"A repeated name", "Words that change places", "Circuit: a head that sees only itself"}
READY = "[data-testid=explorer][data-ready=true]"
FILES = ("index.html", "walk.html", "worked.html", "glossary.html", "lesson.html")


def small() -> Course:
    course = read_course()
    return replace(course, sentences=tuple(one for one in course.sentences if one.title in TITLES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    write_site(made, small())
    write_lesson(made / "alone.html", small())
    return made


@pytest.fixture
def open_site(browser: Browser, folder: Path) -> Iterator[Callable[..., Page]]:
    """Call it with a file of the site. At the end no page may have raised or logged
    anything, or asked for anything but the files beside it."""
    opened: list[BrowserContext] = []
    troubles: list[str] = []

    def new(address: str, *, width: int = 1440, height: int = 900, **options: object) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            offline=True,
            reduced_motion="reduce",
            **options,  # type: ignore[arg-type]
        )
        context.set_default_timeout(chromium.MILLISECONDS_TO_APPEAR)
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: troubles.append(said.text))
        page.on("request", lambda asked: troubles.extend(foreign(asked.url, folder)))
        file, *chosen = address.split("#")
        page.goto("#".join([(folder / file).as_uri(), *chosen]))
        return page

    yield new
    for context in opened:
        context.close()
    assert troubles == []


def foreign(address: str, folder: Path) -> list[str]:
    here = ("data:", "blob:", folder.as_uri() + "/")
    return [] if address.startswith(here) else [address]


def picture(page: Page) -> Locator:
    """The explorer of the page that is shown, once it has drawn all."""
    shown = page.locator(f"main:not([hidden]) {READY}")
    expect(shown).to_have_count(1, timeout=chromium.MILLISECONDS_TO_APPEAR)
    return shown


def shows(page: Page, **chosen: object) -> None:
    """Holds the picture to a head, a stage, a cell."""
    for name, value in chosen.items():
        expect(picture(page)).to_have_attribute(f"data-{name}", str(value))


def test_heads_layers_stages_and_cells_are_chosen(open_site: Callable[..., Page]) -> None:
    page = open_site("index.html")
    shows(page, head=7, stage="weights", query=12, key=1)
    expect(page.get_by_test_id("headline")).to_contain_text("·Hill: 0.89")
    page.get_by_test_id("decoder.0.self-2").click()
    shows(page, head=2)
    expect(page.get_by_test_id("headline")).to_contain_text("·to")
    expect(page).to_have_url(re.compile("place=decoder.0.self&head=2"))
    page.get_by_test_id("stage-scores").click()
    shows(page, stage="scores")
    figure = picture(page).get_by_test_id("figure")
    figure.focus()
    page.keyboard.press("ArrowUp")
    shows(page, query=11, key=1)
    page.get_by_test_id("stage-weights").click()
    shows(page, stage="weights")
    chosen = page.locator("[data-mark=cell]").bounding_box()
    side = chosen["width"]  # a little more than that of a cell
    page.mouse.click(chosen["x"] + 3.4 * side, chosen["y"] + 1.4 * side)
    shows(page, query=12, key=4)
    expect(page).to_have_url(re.compile("query=12&key=4"))  # a moment later
    page.reload()
    shows(page, head=2, stage="weights", query=12, key=4)
    walk = page.locator("nav a[data-to=walk]")
    expect(walk).to_have_attribute("href", re.compile("query=12&key=4"))


@pytest.mark.walk
def test_each_switch_shows_its_recorded_run(open_site: Callable[..., Page]) -> None:
    page = open_site("index.html")
    page.wait_for_selector("[data-testid=switch-mask]")
    for name, words, loss in (
        ("mask", "No mask", "4.25 → 3.33"),
        ("scale", "Not scaled", None),
        ("positions", "Positions off", "4.25 → 4.38"),
        ("decoder.1.self-7", "L1H7 off", None),
    ):
        if name == "positions":
            page.get_by_text("More changes").click()
        page.get_by_test_id(f"switch-{name}").press("Space")
        expect(page.get_by_test_id(f"switch-{name}")).to_have_attribute("aria-checked", "false")
        expect(page.get_by_test_id(f"switch-{name}")).to_be_focused()
        expect(page.get_by_test_id("headline")).to_contain_text(words, ignore_case=True)
        if loss:
            expect(page.locator("p.outcome")).to_contain_text(loss)
        expect(page.locator(".switch[aria-checked=false]")).to_have_count(1)
    page.get_by_test_id("undo").click()
    expect(page.locator("p.outcome b")).to_have_text("4.25")
    expect(page).not_to_have_url(re.compile("change="))


def test_a_switch_and_its_link_open_the_cell_that_the_change_is_about(
    open_site: Callable[..., Page],
) -> None:
    page = open_site("index.html")
    shows(page, query=12, key=1)
    page.get_by_test_id("switch-mask").click()
    shows(page, query=11, key=12)
    page.get_by_test_id("undo").click()
    shows(page, query=12, key=1)
    shows(open_site("index.html#change=mask"), query=11, key=12)


def test_the_switch_of_a_head_whose_run_was_not_recorded_cannot_be_turned(
    open_site: Callable[..., Page],
) -> None:
    page = open_site("index.html")
    expect(page.get_by_test_id("switch-decoder.1.self-7")).to_be_enabled()
    page.get_by_test_id("decoder.2.self-2").click()
    expect(page.get_by_test_id("switch-decoder.2.self-2")).to_be_disabled()
    expect(page.get_by_test_id("switch-decoder.1.self-7")).to_have_count(0)


@pytest.mark.walk
def test_full_detail_has_the_check_and_another_sentence_another_model(
    open_site: Callable[..., Page],
) -> None:
    page = open_site("index.html")
    picture(page)
    page.get_by_test_id("detail-full").click()
    expect(page.get_by_test_id("check")).to_contain_text("equals the model's own output")
    expect(page.locator("table.outcome td").nth(1)).to_have_text("0.977")
    expect(page).to_have_url(re.compile("detail=full"))
    expect(page.get_by_test_id("check")).to_contain_text("over the whole run")
    page.get_by_test_id("how").click()
    expect(page.get_by_test_id("formula").locator(".katex").first).to_be_visible()
    page.get_by_label("Example").select_option("words-that-change-places")
    expect(page.get_by_test_id("headline")).to_contain_text("cat")
    expect(page.locator("main:not([hidden]) p.about.quiet")).to_contain_text("Translator")
    shows(page, query=1, key=2)


@pytest.mark.walk
def test_the_walk_goes_stage_by_stage_to_the_prediction(open_site: Callable[..., Page]) -> None:
    page = open_site("walk.html")
    shows(page, stage="positions")
    expect(page.locator("#walk-tokens li")).to_have_count(13)
    steps = page.get_by_label("Step", exact=True)
    count = steps.locator("option").count()
    for number in range(2, count + 1):
        page.get_by_role("button", name="Next →").click()
        expect(steps.locator("option:checked")).to_contain_text(f"Step {number} of {count}")
        picture(page)
    shows(page, stage="written")
    expect(page.get_by_role("button", name="Next →")).to_be_disabled()
    expect(page.locator("#walk-next table tr")).to_have_count(5)


@pytest.mark.walk
def test_a_lesson_in_one_file_opens_what_its_parts_name(open_site: Callable[..., Page]) -> None:
    page = open_site("alone.html")
    expect(page.get_by_role("heading", level=1)).to_have_text("A lesson of 90 minutes")
    page.get_by_role("link", name="Does the order of words matter?").click()
    expect(page.get_by_test_id("headline")).to_contain_text("Positions off")
    page.get_by_role("link", name="Glossary").click()
    expect(page.get_by_label("Search")).to_be_visible()
    page.go_back()
    expect(page.get_by_test_id("headline")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Softmax by hand").click()
    opened = page.locator("#worked-softmax-or-plain-shares")
    expect(opened).to_have_attribute("open", "")
    expect(opened.locator(".katex").first).to_be_visible()
    page.get_by_role("link", name="Glossary").click()
    page.get_by_label("Search").fill("softmax temperature")
    expect(page.locator(".term:visible")).not_to_have_count(0)
    page.get_by_label("Search").fill("no such term")
    expect(page.get_by_text("No term contains these words.")).to_be_visible()


@pytest.mark.walk
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding(open_site: Callable[..., Page], scheme: str) -> None:
    for address in (*FILES, "index.html#detail=full&change=mask"):
        page = open_site(address, color_scheme=scheme)
        if address.startswith(("index", "walk")):
            picture(page)
        for part in page.locator("main details").all()[:1]:
            part.evaluate("part => { part.open = true }")
        result = look(page)
        assert result.passed
        assert result.grave == [], address


@pytest.mark.walk
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_page_without_a_second_scroll_bar(
    open_site: Callable[..., Page], scheme: str
) -> None:
    for file in FILES:
        page = open_site(file, width=390, height=844, color_scheme=scheme, has_touch=True)
        if file in ("index.html", "walk.html"):
            picture(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    page = open_site("index.html", width=390, height=844, color_scheme=scheme, has_touch=True)
    picture(page)
    page.get_by_test_id("switch-mask").tap()
    expect(page.get_by_test_id("headline")).to_contain_text("No mask")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 18, 21)"}[scheme]
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background
