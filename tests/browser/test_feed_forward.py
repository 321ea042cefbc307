"""The feed-forward page in a real browser: marks, controls and every view."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.controls import MARKS, click_mark, show

TEXT = "the cat saw the dog"


def test_a_mark_fills_the_formula_and_every_view_answers_its_controls(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/feed_forward", model="stories", text=TEXT)
    expect(page.get_by_text("the one that the activation changes most here")).to_be_visible()
    click_mark(page.locator(MARKS).nth(4), "choose token 4 ·dog")
    expect(page.get_by_text("Token 4 ·dog, its neuron with the largest activation")).to_be_visible()
    show(page, "On the curve")
    expect(page.get_by_text("of the values arrive below 0")).to_be_visible()
    show(page, "Contributions")
    expect(page.get_by_text("attention adds", exact=True)).to_be_visible()
    show(page, "Every token")
    expect(page.get_by_text("length of what each sub-layer adds")).to_be_visible()
    show(page, "Gradient by depth")
    expect(page.get_by_text("nearly nothing is left")).to_be_visible()
    show(page, "pre-norm")
    expect(page.get_by_text("neither vanishes nor explodes")).to_be_visible()
    show(page, "Dropout")
    expect(page.get_by_text("became 0; the others were divided by")).to_be_visible()
    show(page, "Embedding")
    expect(page.get_by_text("The stream before the first layer moves by")).to_be_visible()
    show(page, "Evaluation")
    expect(page.get_by_text("Nothing changes")).to_be_visible()


def test_the_curves_of_the_idea_show_slopes_too(open_page: Callable[..., Page]) -> None:
    page = open_page("/feed_forward", model="minilm", text=TEXT)
    page.get_by_role("tab", name="The idea").click()
    expect(page.locator(".js-plotly-plot .ytitle", has_text="value")).to_be_visible()
    show(page, "Slope")
    expect(page.locator(".js-plotly-plot .ytitle", has_text="slope")).to_be_visible()
    page.get_by_role("tab", name="By hand").click()
    page.get_by_role("combobox", name="Example", exact=True).click()
    page.get_by_role("option", name="Dropout on attention weights").click()
    expect(page.get_by_text("Dropout on attention weights.")).to_be_visible()
