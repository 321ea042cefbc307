"""The site without a server: how soon a cold page shows its first picture and answers a sentence that is
typed, on a slow computer and a slow line, and what a switch takes once the model is there.

A phone is stood in for by Chromium's own brakes: the processor four times slower, 10 Mbit/s. Beside each time
stands what the page's own thread spent on it: on a busy machine it waits.
"""

import time
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import CDPSession, Page

from bench.cells import Measured, ms, table
from bench.chromium import PATIENCE, browsing
from bench.quantiles import median
from viz.site.build import write_site
from viz.site.course import read_course

SLOWER, MEGABITS, LATENCY = 4, 10, 20  # of the processor, of the line, milliseconds
MODELS = ("stories", "house-gpt")
WORDS = ("cat", "dog", "ball", "tree")
TOKENS, TIMES = 32, 5
TOOLS = """
window.frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
window.until = async (isTrue) => {
  for (const start = performance.now(); !isTrue(); await frame()) {
    if (performance.now() - start > PATIENCE) throw new Error(`Not seen: ${isTrue}`);
  }
};
window.drawn = () => [...document.querySelectorAll(".picture *")].some(({ shadowRoot }) =>
  shadowRoot?.querySelector("[data-testid=explorer][data-ready=true]"));
window.chosen = (name) => new URLSearchParams(location.hash.slice(1)).get(name);
addEventListener("DOMContentLoaded", () => until(drawn).then(() => (window.pictured = performance.now())));
""".replace("PATIENCE", str(PATIENCE))
TYPE = """async ([text, model]) => {
  const start = performance.now();
  const part = (name) => document.querySelector(`.own ${name}`);
  [part("textarea").value, part(".models").value] = [text, model];
  part("textarea").form.requestSubmit();
  await until(() => chosen("text") === text && chosen("model") === model);
  await frame();
  return performance.now() - start;
}"""
SWITCH = """async (turn) => {
  const start = await turn();
  await until(() => chosen("change") === "mask");
  await frame();
  const end = performance.now();
  document.querySelector("[data-testid=undo]").click();
  await until(() => !chosen("change"));
  return end - start;
}"""
BY_KEY = f"""() => ({SWITCH})(() => {{
  const start = performance.now();
  document.querySelector("[data-testid=switch-mask]").click();
  return start;
}})"""
BY_HAND = f"""() => {{
  const pressed = new Promise((resolve) => {{
    document.addEventListener("click", () => resolve(performance.now()), {{ capture: true, once: true }});
  }});
  window.turned = ({SWITCH})(() => pressed);
}}"""
PLACE = """() => {
  const { x, y, width, height } = document.querySelector("[data-testid=switch-mask]").getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}"""
HELD = 0.1  # seconds that a hand takes until it presses, and until it lets go


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Writes no log."""


def measure(scratch: Path, short: bool) -> dict[str, object]:
    course = read_course()
    folder = scratch / "site"
    recorded = tuple(one for one in course.sentences if one.title == "A repeated name")
    write_site(folder, replace(course, sentences=recorded, in_browser=MODELS))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=folder))
    thread = Thread(target=server.serve_forever)
    thread.start()
    rows = []
    try:
        with browsing() as browser:
            for model in MODELS:
                page = browser.new_page()
                address = f"http://127.0.0.1:{server.server_port}/index.html"
                rows.append(
                    {"model": model} | _visited(page, address, model, 1 if short else TIMES)
                )
                print(rows[-1], flush=True)
                page.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    return {"slower": SLOWER, "megabits": MEGABITS, "tokens": TOKENS, "rows": rows}


def _visited(page: Page, address: str, model: str, times: int) -> dict[str, object]:
    page.set_default_timeout(PATIENCE)
    page.add_init_script(TOOLS)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    session.send("Network.enable")
    rate = MEGABITS * 1_000_000 / 8
    line = {
        "offline": False,
        "latency": LATENCY,
        "downloadThroughput": rate,
        "uploadThroughput": rate,
    }
    session.send("Network.emulateNetworkConditions", line)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.goto(address)
    page.evaluate("until(() => window.pictured)")  # what Playwright waits with, the page forbids
    picture: float = page.evaluate("window.pictured")
    spent_on_picture = _spent(session)
    typed: float = page.evaluate(TYPE, ["the cat saw", model])
    spent_on_typed = _spent(session) - spent_on_picture
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    took: dict[str, list[float]] = {"key": [], "hand": []}
    spent: list[float] = []
    for n in range(2 * times):
        text = " ".join(["the", *(WORDS[(n + k * k) % len(WORDS)] for k in range(TOKENS - 2))])
        text += f" {n}"
        page.evaluate(TYPE, [text, model])  # another text each time: runs are kept
        if n % 2:
            took["hand"].append(_by_hand(page))
            continue
        before = _spent(session)
        took["key"].append(page.evaluate(BY_KEY))
        spent.append(_spent(session) - before)
    return {
        "picture_ms": picture,
        "picture_spent_ms": spent_on_picture,
        "typed_ms": typed,
        "typed_spent_ms": spent_on_typed,
        "switch_ms": median(took["key"]),
        "switch_spent_ms": median(spent),
        "hand_ms": median(took["hand"]),
    }


def _by_hand(page: Page) -> float:
    """Milliseconds from the release of the mouse on the switch until the picture has changed."""
    page.mouse.move(0, 0)
    page.evaluate(BY_HAND)
    page.mouse.move(*page.evaluate(PLACE))
    time.sleep(HELD)
    page.mouse.down()
    time.sleep(HELD)
    page.mouse.up()
    return float(page.evaluate("window.turned"))


def _spent(session: CDPSession) -> float:
    """Milliseconds of the page's thread on a processor so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def tabled(measured: Measured) -> str:
    names = ("picture", "typed", "switch")
    rows = [
        (
            row["model"],
            *(f"{ms(row[f'{name}_ms'])} ({ms(row[f'{name}_spent_ms'])})" for name in names),
            ms(row["hand_ms"]),
        )
        for row in measured["rows"]
    ]
    mask = f"mask at {TOKENS} tokens"
    spent = [f"{name} (own thread)" for name in ("first picture", "typed at once", mask)]
    return table(["model", *spent, f"{mask}, by mouse"], rows)
