"""How smoothly one row becomes weights: the frames of all six beats at 24 tokens, and the longest task.

The frames are those of the browser's own clock, from the click on Play to the end of the last beat. A task
of more than 50 ms is what a browser itself calls long.
"""

import itertools
from pathlib import Path
from urllib.parse import urlencode

from bench import gpt2_size
from bench.chromium import PATIENCE, Tab, browsing, tab
from bench.quantiles import median
from tests.server import serving

TOKENS = 24
TIMES = 3
FRAME = 1000 / 60  # milliseconds
LATE = 1.5 * FRAME  # a frame that comes later than this has left one out
RECORD = """() => {
    window.frames = [];
    window.tasks = [];
    window.watching = true;
    new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => tasks.push(duration)))
        .observe({ type: "longtask" });
    const frame = (now) => { window.frames.push(now); if (window.watching) requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
}"""
FINISHED = "explorerRoot().querySelector('[data-testid=scrub]').value === '6'"


def measure(scratch: Path, short: bool) -> dict[str, object]:
    rows: list[dict[str, object]] = []
    with serving(scratch / "server.log") as server, browsing() as browser:
        for _ in range(1 if short else TIMES):
            with tab(browser, server.address) as opened:
                rows.append(_played(opened))
                print(rows[-1], flush=True)
    return {"tokens": TOKENS, "rows": rows}


def _played(opened: Tab) -> dict[str, object]:
    page = opened.page
    page.emulate_media(reduced_motion="no-preference")
    page.goto(f"/?{urlencode({'text': gpt2_size.text_of(TOKENS).strip(), 'query': TOKENS - 1})}")
    if opened.explorer().get_attribute("data-queries") != str(TOKENS):
        raise RuntimeError(f"The page does not show {TOKENS} tokens.")
    opened.rest(1500)
    page.evaluate(RECORD)
    page.get_by_test_id("open-play").click(timeout=PATIENCE)
    opened.wait_for(FINISHED)
    frames: list[float] = page.evaluate("window.watching = false, window.frames")
    tasks: list[float] = page.evaluate("window.tasks")
    gaps = [after - before for before, after in itertools.pairwise(frames)]
    if opened.troubles:
        raise RuntimeError(f"The page raised errors: {opened.troubles}")
    return {
        "frames": len(frames),
        "frames_a_second": 1000 * len(gaps) / (frames[-1] - frames[0]),
        "median_ms": median(gaps),
        "longest_ms": max(gaps),
        "late": sum(gap > LATE for gap in gaps),
        "long_tasks": len(tasks),
        "longest_task_ms": max(tasks, default=0.0),
    }
