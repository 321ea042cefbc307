"""What the browser sees of every page: its own address, and nothing that the app's policy forbids."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.controls import wait_until_true

WRITE_DOWN_VIOLATIONS = """() => {
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => window.violations.push(
    `${event.effectiveDirective}: ${event.blockedURI} ${event.sourceFile}`));
}"""


def test_the_browser_itself_refuses_what_the_policy_forbids(
    open_page: Callable[..., Page], troubles: list[str]
) -> None:
    page = open_page("/library")
    page.evaluate(WRITE_DOWN_VIOLATIONS)
    page.evaluate(
        """() => {
          const picture = document.createElement("img");
          picture.src = "https://elsewhere.example/picture.png";
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          const frame = document.createElement("iframe");
          frame.src = location.href;
          document.body.append(picture, script, frame);
        }"""
    )
    expect(page.locator("iframe")).to_be_attached()
    wait_until_true(page, "window.violations.length >= 3")
    found = page.evaluate("window.violations.map((line) => line.split(':')[0])")
    assert {"img-src", "script-src-elem", "frame-src"} <= set(found)
    assert page.evaluate("window.ran") is None
    troubles.clear()  # each refusal is an error in the console, as it should be


def test_a_page_opened_at_its_own_address_logs_no_error(
    open_page: Callable[..., Page], troubles: list[str]
) -> None:
    page = open_page("/library")
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    assert troubles == []
