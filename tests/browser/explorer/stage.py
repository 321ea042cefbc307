"""The explorer mounted in a shadow root as Streamlit does it, with the message that Python sends."""

import base64
import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, Route, expect

from model.analysis.stream.around_heads import AroundHeads
from model.trace.records import Attention
from tests.viz.explorer.records import labels
from viz.explorer import Selection, assets, bundle, payload
from viz.explorer.message import HeadClaim, Hero, without_arrays
from viz.explorer.packing import packed

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
    window.soon = undefined;
    const reports = window.reports = [];
    const asked = window.asked = [];
    const checks = window.checks = [];
    const setStateValue = (name, value) => reports.push(value);
    const setTriggerValue = (name, value) => (name === "check" ? checks : asked).push(value);
    window.send = (block) => {
        const data = Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0));
        window.unmount = mount({ data, parentElement: shadow, setStateValue, setTriggerValue });
    };
}"""
# Stands for the work bar: buttons that ask for a head or a layer, marked as the explorer tells.
WORK_BAR = """() => {
    if (document.querySelector("#work-bar")) return;
    const bar = document.body.appendChild(document.createElement("div"));
    bar.id = "work-bar";
    let shown = {};
    const add = (testid, isShown, chosen) => {
        const button = bar.appendChild(document.createElement("button"));
        button.dataset.testid = button.textContent = testid;
        button.setAttribute("role", "radio");
        button.tabIndex = -1;
        button.onclick = () =>
            window.dispatchEvent(new CustomEvent("choose-head", { detail: chosen(), cancelable: true }));
        window.addEventListener("head-shown", ({ detail }) => {
            shown = detail;
            button.ariaChecked = String(isShown(detail));
        });
    };
    for (let n = 0; n < 12; n++) {
        const layer = () => shown.place.replace(/[0-9]+/, n);
        add(`head-${n}`, ({ head }) => head === n, () => ({ ...shown, head: n }));
        add(`layer-${n}`, ({ place }) => place === layer(), () => ({ ...shown, place: layer() }));
    }
}"""
mounts = count()


class Stage:
    """The mounted explorer: what a test sends it and sees of it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.mount = f"mount-{next(mounts)}"
        self.run: tuple[Attention, ...] = ()  # whose layers are offered
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
        baseline: Attention | None = None,
        queries: list[str] | None = None,
        keys: list[str] | None = None,
        revision: int = 0,
        check: float | None = 3e-7,
        *,
        asked: Selection | None = None,
        held: Sequence[str] = (),
        run: str = "",
        claims: Sequence[HeadClaim] = (),
        around: Sequence[AroundHeads] = (),
        hero: Hero | None = None,
    ) -> None:
        """Hands the browser what Python sends; `asked` is the reader's choice, where it counts. held: the
        parts that come without their arrays, because the browser has them already. run: its name; each stage
        has one of its own."""
        selection = selection or Selection(0, "weights", 3, 1)
        asked = asked or selection
        message = payload(
            attention,
            queries=queries or labels(attention.query.shape[1]),
            keys=keys or labels(attention.key.shape[1]),
            head=asked.head,
            stage=asked.stage,
            check=check,
            baseline=baseline,
            layers=[layer.name for layer in self.run],
            around=around,
        )
        extra = {"selection": asdict(selection), "revision": revision, "mount": self.mount}
        extra |= {"run": run or self.mount, "claims": [asdict(claim) for claim in claims]}
        extra |= {"hero": hero and asdict(hero)}
        block = packed(without_arrays(message, held) | extra | {"assets": assets.addresses()})
        self.page.evaluate("block => window.send(block)", base64.b64encode(block).decode())

    def asked(self) -> list[dict[str, object]]:
        """The layers that Python was told of: the first one, and all that follow within the delay."""
        self.page.wait_for_function("window.asked.length > 0")
        found: list[dict[str, object]] = self.page.evaluate(AFTER_THE_DELAY, "asked")
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

    def click_at_once(self, *names: str, then: str = "") -> None:
        """Clicks parts one after the other, then runs a script, before any timer of the browser ends."""
        parts = [self.part(name).element_handle() for name in names]
        self.page.evaluate(
            f"(parts) => {{ for (const part of parts) part.click(); {then} }}", parts
        )

    def expect_report_at_once(self, name: str) -> None:
        """Clicks a part and waits until that was reported, without the delay."""
        self.click_at_once(name, then="setTimeout(() => (window.soon = window.reports.length), 50)")
        self.page.wait_for_function("window.soon !== undefined")
        assert self.page.evaluate("window.soon") == 1


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
