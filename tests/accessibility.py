"""Every page tested with axe-core in a real browser: the rules of WCAG 2.2 and good practice.

`python -m tests.accessibility` (`make accessibility`) writes docs/accessibility.md. The browser tests
call `findings` on every page in both themes.
"""

import importlib.util
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.bench.chromium import PATIENCE, SCREEN, browsing
from tests.bench.server import serving
from tests.browser.conftest import wait_until_settled
from viz.state.menu import PAGES

REPORT = Path(__file__).resolve().parents[1] / "docs" / "accessibility.md"
THEMES = ("light", "dark")
ABOUT_COLOUR = ("color-contrast", "link-in-text-block")  # all that a theme can change
GRAVE = ("serious", "critical")
# What stands inside Streamlit and cannot be mended here: (rule, part of the selector, reason).
EXCUSED: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Finding:
    """One element that breaks a rule."""

    rule: str
    impact: str
    element: str
    help: str

    @property
    def excused(self) -> bool:
        return any(rule == self.rule and part in self.element for rule, part, _ in EXCUSED)

    def __str__(self) -> str:
        return f"{self.impact}: {self.rule}, {self.help}: {self.element}"


@dataclass(frozen=True)
class Result:
    """One look at a page: how many rules held, and what breaks one."""

    passed: int
    findings: tuple[Finding, ...]

    @property
    def grave(self) -> list[str]:
        """What no page may have."""
        return [
            str(finding)
            for finding in self.findings
            if finding.impact in GRAVE and not finding.excused
        ]


def look(page: Page, rules: tuple[str, ...] = ()) -> Result:
    """Tries these rules, or all, on what the page shows now, pictures and components included."""
    page.evaluate(_script())
    options = {"preload": False, "resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    seen = page.evaluate("(options) => axe.run(document, options)", options)
    found = (
        Finding(rule["id"], rule["impact"], str(node["target"]), rule["help"])
        for rule in seen["violations"]
        for node in rule["nodes"]
    )
    return Result(len(seen["passes"]), tuple(found))


def both_themes(page: Page) -> dict[str, Result]:
    """All rules in the theme that the page has now, those about colour in the other one."""
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    first, second = reversed(THEMES) if dark else THEMES
    results = {first: look(page)}
    app = page.get_by_test_id("stApp")
    ground = app.evaluate("app => getComputedStyle(app).backgroundColor")
    other = "light" if dark else "dark"
    # The page runs anew in it; where motion is unwanted, what is still the old fades at once.
    page.emulate_media(color_scheme=other, reduced_motion="no-preference")
    expect(app).not_to_have_css("background-color", ground)
    wait_until_settled(page)
    results[second] = look(page, ABOUT_COLOUR)
    return results


@cache
def _script() -> str:
    """axe-core itself, from its Python package."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text()


def table(results: dict[str, dict[str, Result]]) -> str:
    """The report: one line a page."""
    lines = [
        "# Accessibility, tested with axe-core",
        "",
        "Written by `make accessibility`. The browser tests allow no serious and no critical finding on any",
        "page, in either theme. All rules are tested in one theme, the rules about colour in both.",
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
    REPORT.write_text(table(results), encoding="utf-8")


if __name__ == "__main__":
    main()
