"""From a click to the picture: head, stage, token, layer, mask, page, at 32, 256 and 1,024 tokens.

32 tokens: the GPT that ships with the app, where Plotly draws. 256: MiniLM-L6, where the canvas draws.
1,024: a random model of GPT-2's size. The same with the browser's main thread four times slower, and the
bytes that came over the network.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser

from bench import gpt2_size
from bench.chromium import Tab, browsing, tab
from bench.quantiles import median, p90
from tests.server import Server, serving
from tools.menu import link_to
from viz.state.navigation import PAGES, PageEntry

WARM = 4
TIMES = 20  # of each switch, in whole rounds of its acts, so that each switch starts where it ends
SLOW = 4  # times slower: a weak laptop
PRESS = 80  # milliseconds from press to release, as a hand has it
PAUSE = 20  # milliseconds between two looks for a picture that takes seconds
PAINTED = "explorerRoot().dataset.painted === 'true'"
QUIET = (
    "document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'"
    " && !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')"
)


@dataclass(frozen=True)
class Case:
    """A text to click on: the model that reads it, and how the pages say its layers."""

    tokens: int
    model: str
    text: str
    stack: str
    layers: int

    @property
    def path(self) -> str:
        place = f"{self.stack}.0.self"
        parameters = {"text": self.text, "model": self.model, "place": place, "head": 0}
        return f"/?{urlencode(parameters)}"


CASES = (
    Case(
        32,
        "house-gpt",
        gpt2_size.text_of(32).strip(),
        "decoder",
        4,
    ),
    Case(
        256,
        "minilm",
        gpt2_size.text_of(254).strip(),  # [CLS] and [SEP] make it 256
        "encoder",
        6,
    ),
)
LONG = Case(
    1024,
    gpt2_size.NAME,
    gpt2_size.text_of(1024).strip(),
    "decoder",
    gpt2_size.LAYERS,
)


def measure(scratch: Path, short: bool) -> dict[str, object]:
    times = 4 if short else TIMES
    gpt2_size.save(scratch)
    rows: list[dict[str, object]] = []
    with serving(scratch / "server.log", scratch) as server, browsing() as browser:
        for case in CASES:
            for rate in (1, SLOW):
                rows += _case(browser, server, case, rate, times)
        pages = _pages(browser, server, times)
        long = {} if short else _long(browser, server, times)
    # A mouse opens a page as it is pressed.
    return {"press_ms": PRESS, "early_ms": PRESS, "rows": rows, "pages": pages, "long": long}


def _case(
    browser: Browser, server: Server, case: Case, rate: int, times: int
) -> list[dict[str, object]]:
    with tab(browser, server.address) as opened:
        opened.page.goto(case.path)
        root = opened.explorer()
        if root.get_attribute("data-queries") != str(case.tokens):
            raise RuntimeError(f"The page does not show {case.tokens} tokens of {case.model}.")
        opened.rest(1500)
        opened.throttle(rate)
        facts = {"tokens": case.tokens, "model": case.model, "slower": rate}
        facts |= {"drawn_by": root.get_attribute("data-renderer")}
        rows = []
        for name, acts in _switches(opened, case).items():
            _show_heads(opened, name in ("head", "layer"))
            rows.append(facts | {"switch": name} | _timed(opened, acts, times))
            print(rows[-1], flush=True)
        _expect_no_trouble(opened)
        return rows


@dataclass(frozen=True)
class Act:
    """One click and what must be seen after it."""

    click: Callable[[], None]
    wanted: str


def _switches(opened: Tab, case: Case) -> dict[str, Sequence[Act]]:
    page = opened.page

    def inside(testid: str, wanted: str) -> Act:
        locator = page.get_by_test_id(testid)
        return Act(lambda: locator.click(delay=PRESS), f"{wanted} && {PAINTED}")

    def token(number: int) -> Act:
        column, wanted = f"column-{number}", f"{data('query', number)} && {PAINTED}"
        if case.tokens <= 32:
            return inside(column, wanted)
        # Of a long text a column is narrower than a pixel that the pointer could be put on.
        return Act(lambda: page.get_by_test_id(column).evaluate("(one) => one.click()"), wanted)

    def data(name: str, value: object) -> str:
        return f"explorerRoot().dataset.{name} === '{value}'"

    def layer(number: int) -> Act:
        name = f"explorerRoot().dataset.layer === '{case.stack}.{number}.self'"
        row = page.get_by_role("rowheader", name=f"L{number}", exact=True)
        return Act(lambda: row.click(delay=PRESS), f"{name} && {PAINTED}")

    def both_ways(name: str) -> list[Act]:
        toggle = page.get_by_test_id("stCheckbox").get_by_text(name)
        ends = [f"{data('changed', state)} && {PAINTED}" for state in ("true", "false")]
        return [Act(lambda: toggle.click(delay=PRESS), wanted) for wanted in ends]

    masked = (
        ("masked",) if case.stack == "decoder" else ()
    )  # an encoder that hides nothing has no such stage
    stages = ("scores", "scaled", *masked, "weights")
    tokens = (3, 11, 17, 5)
    return {
        "head": [inside(f"head-{n}", data("head", n)) for n in (1, 2, 3, 0)],
        "stage": [inside(f"stage-{name}", data("stage", name)) for name in stages],
        "token": [token(n) for n in tokens],
        "layer": [layer(n) for n in (*range(1, case.layers), 0)],
        "mask": both_ways("Hide the future"),
        "scaling": both_ways("Divide scores by"),
    }


def _show_heads(opened: Tab, shown: bool) -> None:
    """Opens or closes the panel of heads."""
    if opened.page.get_by_test_id("heads").is_visible() != shown:
        opened.page.get_by_test_id("head-picker").press("Enter" if shown else "Escape")
        opened.rest()


def _timed(opened: Tab, acts: Sequence[Act], times: int) -> dict[str, object]:
    """Median and p90 of the acts in whole rounds, the first ones left out, and the bytes of one."""

    def rounds(least: int) -> list[float]:
        count = math.ceil(least / len(acts)) * len(acts)
        return [_once(opened, act) for act, _ in zip(itertools.cycle(acts), range(count))]

    rounds(WARM)
    with opened.wire.counting():
        counted = rounds(1)
    kept = rounds(times)
    return {
        "times": len(kept),
        "median_ms": median(kept),
        "p90_ms": p90(kept),
        "bytes": round(opened.wire.total / len(counted)),
    }


def _once(opened: Tab, act: Act) -> float:
    passed = opened.milliseconds(act.click, act.wanted)
    opened.explorer()
    opened.rest()
    return passed


def _pages(browser: Browser, server: Server, times: int) -> list[dict[str, object]]:
    """From one page to another through the menu, once Plotly is loaded: each page from Home, the
    explorer's page oftenest."""
    rows = []
    home = PAGES[0]
    with tab(browser, server.address) as opened:
        opened.page.goto(CASES[0].path)
        opened.explorer()
        for entry in PAGES[1:]:
            explorer = entry.file == "pages/home.py"
            passed = []
            for n in range((times if explorer else min(times, 6)) + 1):
                _open(opened, home)
                spent = _open(opened, entry, explorer)
                passed += [spent] if n else []  # the first run of a page reads its modules
            row = {"page": entry.title, "times": len(passed)}
            rows.append(row | {"median_ms": median(passed), "p90_ms": p90(passed)})
            print(rows[-1], flush=True)
        _expect_no_trouble(opened)
    return rows


def _open(opened: Tab, page: PageEntry, explorer: bool = False) -> float:
    link, heading = link_to(opened.page, page), page.heading or page.title
    opened.rest()
    seen = f"document.querySelector('h1')?.textContent.trim() === {heading!r} && {QUIET}"
    if explorer:
        seen = f"{seen} && {PAINTED}"
    passed = opened.milliseconds(lambda: link.click(delay=PRESS), seen, "pointerup")
    opened.rest()
    return passed


def _long(browser: Browser, server: Server, times: int) -> dict[str, object]:
    """1,024 tokens: from Enter in the sentence box to the picture, then heads; bytes of a text more."""
    with tab(browser, server.address) as opened:
        opened.page.goto(replace(LONG, text="the cat sat").path)
        opened.explorer()
        opened.rest(1500)
        box = opened.page.get_by_role("textbox", name="Your sentence")

        def read(text: str, tokens: int) -> float:
            box.fill(text)
            wanted = f"explorerRoot().dataset.queries === '{tokens}' && {PAINTED}"
            passed = opened.milliseconds(lambda: box.press("Enter"), wanted, "keydown", PAUSE)
            opened.explorer()
            opened.rest(1500)
            return passed

        rest, words = LONG.text.removeprefix("the "), ("this", "a", "my", "one", "the")
        counted, *texts = (f"{word} {rest}" for word in words)  # a pass each
        pictures = []
        for text in texts:
            pictures.append(read(text, LONG.tokens))
            read("the cat sat", 3)
        with opened.wire.counting():
            read(counted, LONG.tokens)
        sent = opened.wire.total
        first = {"times": len(pictures), "median_ms": median(pictures), "longest_ms": max(pictures)}
        print(first, flush=True)
        _show_heads(opened, True)
        timed = _timed(opened, _switches(opened, LONG)["head"], times)
        print(timed, flush=True)
        _expect_no_trouble(opened)
        return {"first_picture": first, "first_bytes": sent, "head": timed}


def _expect_no_trouble(opened: Tab) -> None:
    if opened.troubles:
        raise RuntimeError(f"The page failed while it was measured: {opened.troubles}")
