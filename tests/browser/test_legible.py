"""Nothing on a page is cut off, on other letters, beyond the screen or far below the rest: every page and
view, wide and on a phone, and with other models the views that differ."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from model.worked import examples
from tests.browser.test_page_frame import assert_opens_plainly
from tests.legible import LOWEST, PICTURE, STILL, WIDTHS, Walk, faults, walk
from viz.explorer.assets import static_address
from viz.state.navigation import PAGES, PageEntry

WITH_A_MODEL = (
    "", "all_heads", "tokens", "positions", "layer_norm", "feed_forward", "prediction",
    "shapes_and_cost",
)  # fmt: skip
# Each is looked at where there is least room, on the pages that its kind changes: two stacks, a large model,
# an encoder, a model of attention alone. Stories has the views of House GPT, with fewer heads.
MODELS = {
    "translate-en-fr": WITH_A_MODEL,
    "smollm2-135m-instruct": ("", "layer_norm"),
    "minilm": ("", "layer_norm", "prediction"),
    "induction": ("", "all_heads", "feed_forward", "prediction"),
}
NO_PICTURE = ("for_a_class", "corpus", "worked_examples")  # pages that open on words or formulas
WORDS = ".st-key-page :is(p, input, dt)"  # a page of words alone begins with them
PLAIN = """<body style='margin:0;font:16px/1.2 sans-serif'>
<div data-testid=stMain style='overflow:auto;height:100vh'><div data-testid=stMainBlockContainer>
<p>a page</p>{}</div></div></body>"""
TOO_WIDE = """async (latex) => {
    await Promise.allSettled([...document.fonts].map((font) => font.load()));
    const place = (window.place ??= document.querySelector(".katex-display").parentElement);
    const widest = document.createElement("div");
    widest.style.width = "9999px";
    place.replaceChildren(widest);
    const below = document.querySelector(".st-key-page").clientWidth;
    const beside = place.clientWidth;
    const written = latex.flatMap(([formula, numbers]) => [[formula, beside], [numbers, below]]);
    const drawn = written.filter(([formula]) => formula).map(([formula, width]) => {
        const room = document.createElement("div");
        room.style.width = `${width}px`;
        katex.render(formula, room, { displayMode: true, throwOnError: true });
        return [formula, room];
    });
    place.replaceChildren(...drawn.map(([, room]) => room));
    const by = ({ firstChild: { scrollWidth, clientWidth } }) => scrollWidth - clientWidth;
    const wide = drawn.filter(([, room]) => by(room) > 2);
    const found = wide.map(([formula, room]) => `${by(room)} px: ${formula}`);
    place.replaceChildren();
    return found;
}"""
LINE = "white-space:nowrap'>a long line of words</div>"
TURNED = "<text x='{0}' y='40' transform='rotate(-45 {0} 40)'>words</text>"
PLANTED = {
    "cut off": f"<div style='width:60px;overflow:hidden;{LINE}",
    "cut off, without a bar": f"<div style='width:60px;overflow:auto;{LINE}",
    "cut off, below": "<div style='height:9px;overflow:hidden'>words</div>",
    "on each other": "<div style='height:0'>first words</div><div>other words</div>",
    "on each other, turned": f"<svg width='90' height='60'>{TURNED.format(20)}{TURNED.format(24)}</svg>",
    "beyond the screen": f"<div style='margin-left:1400px;{LINE}",
    "empty": "<div style='height:900px'></div><p>words</p>",
    "empty, at the end": "<div style='height:1900px'></div>",
    "legend": """<div class='js-plotly-plot'><svg class='main-svg' width='100%' height='60'>
        <g class='bars'><g class='point'><path d='M0,0h90v40h-90z'/></g></g>
        <g class='legend'><text class='legendtext' y='20'>words</text></g></svg></div>""",
}
MEANT = [
    f"<div style='width:60px;overflow:auto;scrollbar-color:red blue;{LINE}",
    f"<div style='width:60px;overflow:hidden;text-overflow:ellipsis;{LINE}",
    "<div style='position:absolute;clip-path:inset(50%)'>said aloud</div><p>another line</p>",
    f"<svg width='90' height='60'>{TURNED.format(20)}{TURNED.format(40)}</svg>",
    "<div style='height:100px'></div>",
]


def test_the_look_sees_a_fault(page: Page, subtests: pytest.Subtests) -> None:
    for fault in PLANTED:
        with subtests.test(fault=fault):
            page.set_content(PLAIN.format(PLANTED[fault]))
            (found,) = faults(page, patience=0)
            assert found.startswith(fault.split(",")[0])


def test_the_look_lets_pass_what_is_meant(page: Page) -> None:
    for meant in MEANT:
        page.set_content(PLAIN.format(meant))
        assert faults(page) == [], meant


@pytest.mark.walk
@pytest.mark.timeout(900)  # a page takes ten seconds on a free machine
@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.address or "home")
def test_every_view_of_a_page_can_be_read_and_its_picture_is_near_the_top(
    page: Page, open_page: Callable[..., Page], entry: PageEntry
) -> None:
    # The others begin with words, and so do the page for a class, a list of links, and that of profiles where
    # none ships.
    shows = (entry.reads or entry.has_beats) and entry.address not in NO_PICTURE
    on = Walk(page, opens_on=PICTURE if shows else WORDS)
    open_page(f"/{entry.address}")
    assert_opens_plainly(page)
    walk(on, entry.title)
    assert on.told() == []
    assert on.tops.keys() == WIDTHS.keys()
    assert {width: top for width, top in on.tops.items() if top > LOWEST[width]} == {}
    live = {view: top for view, top in on.begins.items() if "· Your sentence ·" in view}
    assert {view: top for view, top in live.items() if top > LOWEST["phone"]} == {}


@pytest.mark.walk
@pytest.mark.timeout(900)
@pytest.mark.parametrize("model", MODELS)
def test_every_view_of_a_model_can_be_read(
    page: Page, open_page: Callable[..., Page], model: str
) -> None:
    on = Walk(page, ("phone",))
    for address in MODELS[model]:
        open_page(f"/{address}", model=model)
        walk(on, address, beats=False, switches=False)
    assert on.told() == []


def test_the_number_of_letters_stands_beside_a_long_sentence(
    page: Page, open_page: Callable[..., Page]
) -> None:
    open_page("/")
    box = page.get_by_role("textbox", name="Your sentence")
    box.fill("The old man gave the ball to the girl. " * 8)
    expect(page.get_by_test_id("InputInstructions")).to_be_visible()
    for size in WIDTHS.values():
        page.set_viewport_size(size)
        assert faults(page) == []


@pytest.mark.walk
def test_every_formula_of_the_worked_examples_has_its_room(
    page: Page, open_page: Callable[..., Page]
) -> None:
    """All of them where the first one stands, beside its result, and their numbers below both."""
    latex = [(step.formula, step.numbers) for example in examples() for step in example.steps]
    latex.append((r"\text{" + "too wide " * 30 + "}", ""))
    open_page("/worked_examples")
    page.add_script_tag(url=static_address("katex/katex.min.js"))
    expect(page.locator(".katex-display").first).to_be_visible()
    for size in WIDTHS.values():
        page.set_viewport_size(size)
        page.evaluate(STILL)
        found = page.evaluate(TOO_WIDE, latex)
        assert ["too wide" in formula for formula in found] == [True], found
