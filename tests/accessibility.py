"""Every page tested with axe-core in a real browser: the rules of WCAG 2.2 and good practice.

The browser tests look at every page in both themes; `python -m tools.accessibility` writes the report.
"""

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import wait_until_settled

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


def look(page: Page, rules: tuple[str, ...] = (), within: str = "html") -> Result:
    """Tries these rules, or all, on what a part of the page shows now, pictures and components included."""
    page.evaluate(_script())
    options = {"preload": False, "resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    seen = page.evaluate("([within, options]) => axe.run(within, options)", [within, options])
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
