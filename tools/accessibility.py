"""`python -m tools.accessibility` (`make accessibility`) tries every page with axe-core and writes
docs/accessibility.md."""

import tempfile
from pathlib import Path

from bench.chromium import PATIENCE, SCREEN, browsing
from model.system.files import write_whole
from tests.accessibility import EXCUSED, THEMES, Result, both_themes
from tests.browser.conftest import wait_until_settled
from tests.server import serving
from viz.state.navigation import PAGES

REPORT = Path(__file__).resolve().parents[1] / "docs" / "accessibility.md"


def table(results: dict[str, dict[str, Result]]) -> str:
    """The report: one line a page."""
    lines = [
        "# Accessibility, tested with axe-core",
        "",
        "Written by `make accessibility`. The browser tests allow no serious and no critical finding on any",
        "page, in either theme. All rules are tested in one theme, the rules about colour in both.",
        "The pages of the site (docs/site.md) are held to the same, each with all rules in both themes.",
        "",
        "| page | rules passed | findings in light | findings in dark |",
        "|---|---|---|---|",
    ]
    for title, themes in results.items():
        found = [_told(themes[theme]) for theme in THEMES]
        most = max(result.passed for result in themes.values())
        lines.append(f"| {title} | {most} | {found[0]} | {found[1]} |")
    lines += ["", "## Findings inside Streamlit that are excused", ""]
    lines += [f"- `{rule}` at `{part}`: {why}" for rule, part, why in EXCUSED] or ["None."]
    return "\n".join(lines) + "\n"


def _told(result: Result) -> str:
    rules = sorted({f"{finding.rule} ({finding.impact})" for finding in result.findings})
    return ", ".join(rules) or "none"


def main() -> None:
    results: dict[str, dict[str, Result]] = {}
    with (
        tempfile.TemporaryDirectory() as scratch,
        serving(Path(scratch) / "server.log") as server,
        browsing() as browser,
    ):
        page = browser.new_page(viewport=SCREEN, base_url=server.address, color_scheme="light")
        page.set_default_timeout(PATIENCE)
        for entry in PAGES:
            page.goto(f"/{entry.address}")
            wait_until_settled(page)
            results[entry.title] = both_themes(page)
            print(entry.title, {theme: _told(one) for theme, one in results[entry.title].items()})
    write_whole(REPORT, table(results).encode())


if __name__ == "__main__":
    main()
