"""The explorer mounted in a shadow root as Streamlit does it, with the message that Python sends."""

import base64
import re
from dataclasses import asdict
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, Route, expect

from model.trace.records import Attention
from tests.viz.explorer.records import sent
from viz.explorer import Selection, assets, bundle

ADDRESS = "http://explorer.test"
PYTHON_JS = (bundle.FOLDER / "js" / "python.js").read_text(encoding="utf-8")
REPORT_DELAY = int(re.findall(r"REPORT_DELAY = (\d+)", PYTHON_JS)[0])  # milliseconds
# The browser keeps the order of its own timers, however busy the machine is: one that is set later and
# for longer ends later.
AFTER_THE_DELAY = (
    f"name => new Promise((tell) => setTimeout(() => tell(window[name]), {REPORT_DELAY + 50}))"
)
LIGHT = {"background-color": "#ffffff", "secondary-background-color": "#f4f3f6"}
LIGHT |= {"text-color": "#262730", "border-color": "#dad8df", "primary-color": "#6a51a3"}
DARK = {"background-color": "#16161a", "secondary-background-color": "#212127"}
DARK |= {"text-color": "#ececf1", "border-color": "#3a3a43", "primary-color": "#a693d8"}
MOUNT = """async ([html, css]) => {
    window.unmount?.();
    document.querySelector("#place")?.remove();
    const place = document.body.appendChild(document.createElement("div"));
    place.id = "place";
    const shadow = place.attachShadow({ mode: "open" });
    shadow.innerHTML = `<div>${html}<style>${css}</style></div>`;
    const { default: mount } = await import("/explorer.js");
    const reports = window.reports = [];
    const asked = window.asked = [];
    const setStateValue = (name, value) => reports.push(value);
    const setTriggerValue = (name, value) => asked.push(value);
    window.send = (block) => {
        const data = Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0));
        window.unmount = mount({ data, parentElement: shadow, setStateValue, setTriggerValue });
    };
}"""
# Stands for the work bar: buttons that ask for a head.
WORK_BAR = """() => {
    if (document.querySelector("#work-bar")) return;
    const bar = document.body.appendChild(document.createElement("div"));
    bar.id = "work-bar";
    let shown = {};
    window.addEventListener("head-shown", ({ detail }) => (shown = detail));
    for (let head = 0; head < 3; head++) {
        const button = bar.appendChild(document.createElement("button"));
        button.dataset.testid = button.textContent = `head-${head}`;
        button.tabIndex = -1;
        button.onclick = () => window.dispatchEvent(
            new CustomEvent("choose-head", { detail: { ...shown, head }, cancelable: true }));
    }
}"""
mounts = count()


class Stage:
    """The mounted explorer: what a test sends it and sees of it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.mount = f"mount-{next(mounts)}"
        page.evaluate(WORK_BAR)
        page.evaluate(MOUNT, [bundle.skeleton(), bundle.style()])
        self.theme(LIGHT)

    def send(
        self,
        attention: Attention,
        selection: Selection | None = None,
        **more: Any,
    ) -> Locator:
        """Posts what Python sends; returns the explorer once it is drawn."""
        self.post(attention, selection, **more)
        return self.ready()

    def post(
        self,
        attention: Attention,
        selection: Selection | None = None,
        revision: int = 0,
        *,
        run: str = "",
        **more: Any,
    ) -> None:
        """Hands the browser what Python sends. run: its name; each stage has one of its own. more: as `sent`
        has it."""
        chosen = selection or Selection(0, "weights", 3, 1)
        said = {"selection": asdict(chosen), "revision": revision, "mount": self.mount}
        said |= {"run": run or self.mount}
        block = sent(attention, chosen, said=said, **more).tobytes()
        self.page.evaluate("block => window.send(block)", base64.b64encode(block).decode())

    def asked(self) -> list[str]:
        """How much Python was told to show: the first time, and all that follow within the delay."""
        self.page.wait_for_function("window.asked.length > 0")
        found: list[str] = self.page.evaluate(AFTER_THE_DELAY, "asked")
        return found

    def ready(self) -> Locator:
        expect(self.root).to_have_attribute("data-ready", "true")
        return self.root

    @property
    def root(self) -> Locator:
        return self.page.get_by_test_id("explorer")

    def part(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    def expect_cell(self, **names: object) -> None:
        for name, value in names.items():
            expect(self.root).to_have_attribute(f"data-{name}", str(value))

    def drawn(self, panel: int = 0) -> NDArray[np.float64]:
        """The numbers Plotly has drawn, NaN where there is a gap."""
        self.ready()
        rows = self.root.locator(".figure > .plotly").evaluate(
            "(plot, n) => plot.data[n].z.map((row) => Array.from(row, (v) => isNaN(v) ? null : v))",
            panel,
        )
        return np.array(rows, dtype=float)

    def theme(self, colours: dict[str, str]) -> None:
        self.page.evaluate(
            """colours => { for (const [name, value] of Object.entries(colours))
                document.querySelector("#place").style.setProperty(`--st-${name}`, value); }""",
            colours,
        )

    def reports(self) -> list[dict[str, object]]:
        """What was reported to Python, once the delay has passed."""
        found: list[dict[str, object]] = self.page.evaluate(AFTER_THE_DELAY, "reports")
        return found


def serve(route: Route) -> None:
    """The page, the script, and the static files at the address where Streamlit has them."""
    path = route.request.url.removeprefix(ADDRESS + "/").split("?")[0]
    if path == "":
        page = '<!doctype html><html><body style="margin:0"></body></html>'
        route.fulfill(body=page, content_type="text/html")
    elif path == "explorer.js":
        route.fulfill(body=bundle.script(), content_type="text/javascript")
    elif path == assets.PLOTLY_ADDRESS:
        route.fulfill(path=assets.PLOTLY)
    elif path.startswith("app/static/"):
        route.fulfill(path=assets.STATIC / path.removeprefix("app/static/"))
    else:
        route.fulfill(status=404)


troubles: dict[Page, list[str]] = {}


def troubles_of(page: Page) -> list[str]:
    return troubles.setdefault(page, [])


def middle(stage: Stage, row: int, column: int, rows: int, columns: int) -> dict[str, float]:
    """The middle of a cell, from the figure's corner; the frame of the box says where cells lie."""
    box = stage.root.locator(".marks rect").first
    left, top, width, height = (
        float(box.get_attribute(n) or 0) for n in ("x", "y", "width", "height")
    )
    return {"x": left + (column + 0.5) / columns * width, "y": top + (row + 0.5) / rows * height}


def expected(attention: Attention, stage: str, head: int) -> NDArray[np.float32]:
    if stage in ("query", "key", "value", "output"):
        found: NDArray[np.float32] = getattr(attention, stage)[head]
        return found
    matrix = getattr(attention, stage)(head)
    if stage in ("masked", "weights") and attention.mask is not None:
        return np.where(attention.mask, matrix, np.nan)
    return np.asarray(matrix)


STAGES = ("query", "key", "value", "scores", "scaled", "masked", "weights", "output")
