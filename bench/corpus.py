"""Heads over a corpus: from a click on a head to its card and to its examples, with made-up profiles of 400
and 4,000 heads."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from bench.cells import Measured, megabytes, ms, table
from bench.chromium import Tab, browsing, tab
from bench.quantiles import median, p90
from tests.model.profile.synthetic import many_heads
from tests.server import serving

HEADS = (400, 4000)
TIMES, WARM = 20, 3
PRESS = 80  # milliseconds from press to release
FIND = """window.corpusPart = (part) => {
    const known = (window.corpusParts ??= {});
    if (known[part]?.isConnected) return known[part];
    const found = (holder) => holder.shadowRoot?.querySelector(`.corpus[data-part=${part}]`);
    return (known[part] = [...document.querySelectorAll("*")].map(found).find(Boolean));
};"""


def measure(scratch: Path, short: bool) -> dict[str, object]:
    rows = []
    with serving(scratch / "server.log") as server, browsing() as browser:
        for heads in HEADS:
            folder = scratch / f"heads-{heads}"
            many_heads(heads).save(folder)
            rows += _rows(browser, server.address, folder, heads, 4 if short else TIMES)
    return {"press_ms": PRESS, "rows": rows}


def tabled(measured: Measured) -> str:
    """What was measured, as a table."""
    rows = [
        (
            f"{row['heads']:,}",
            row["wanted"],
            ms(row["median_ms"]),
            ms(row["p90_ms"]),
            megabytes(row["first_bytes"]),
        )
        for row in measured["rows"]
    ]
    return table(("heads", "from a click to", "median", "p90", "sent at first"), rows)


def _rows(
    browser: Browser, address: str, folder: Path, heads: int, times: int
) -> list[dict[str, object]]:
    with tab(browser, address) as opened:
        page = opened.page
        page.add_init_script(FIND)
        page.goto("/corpus?model=house-gpt&show=A+text+of+yours")
        box = page.get_by_role("textbox", name="Open a folder")
        box.wait_for()
        with opened.wire.counting():
            box.fill(str(folder))
            box.press("Enter")
            opened.wait_for(f"corpusPart('map')?.textContent.includes('{heads:,} heads')")
            opened.rest(1500)
        sent = opened.wire.total
        points = _points(opened, WARM + times)
        canvas = page.get_by_test_id("map-0")

        def on_map(name: str) -> Callable[[], None]:
            x, y = points[name]
            return lambda: canvas.click(position={"x": x, "y": y}, delay=PRESS)

        card, listed = [], []
        for name in points:
            wanted = f"corpusPart('map').dataset.name === '{name}'"
            card.append(opened.milliseconds(on_map(name), wanted))
            opened.rest()
        for name in points:
            wanted = f"corpusPart('examples').dataset.title?.startsWith('Examples of {name}:')"
            listed.append(opened.milliseconds(on_map(name), wanted))
            opened.rest()
        if opened.troubles:
            raise RuntimeError(f"The page failed while it was measured: {opened.troubles}")
    facts = {"heads": heads, "first_bytes": sent}
    timed = {"card": card[WARM:], "examples": listed[WARM:]}
    return [
        facts
        | {"wanted": wanted, "times": len(kept), "median_ms": median(kept), "p90_ms": p90(kept)}
        for wanted, kept in timed.items()
    ]


def _points(opened: Tab, count: int) -> dict[str, tuple[float, float]]:
    """Where some heads stand on the map: those that a click there opens, and no neighbour."""
    page, found = opened.page, dict[str, tuple[float, float]]()
    root, canvas = page.locator(".corpus[data-part=map]"), page.get_by_test_id("map-0")
    while len(found) < count:
        for _ in range(7):
            canvas.press("ArrowRight")
        name = root.get_attribute("data-name") or ""
        x, y = map(float, (canvas.get_attribute("data-at") or "").split(","))
        canvas.click(position={"x": x, "y": y})
        if root.get_attribute("data-name") == name:
            found[name] = (x, y)
    opened.rest(1500)
    return found
