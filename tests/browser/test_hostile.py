"""One terrible sentence on the key pages: nothing of it acts, and it stays in the box as typed.

The model is one whose tokens are whole attacks: an ordinary tokenizer would tear them apart.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.hostile.attacks import MARK, SHORT
from tests.hostile.hostile_models import hostile_folder

TERRIBLE = " ".join(word for word in SHORT if not set(word) & set("\n\x00\x1b\u2028")) + " the cat"
# Those with every kind of label; tests/hostile opens all pages.
PAGES = [("/", "More changes"), ("/all_heads", "")]
INJECTED = """(mark) => {
    const found = [];
    const look = (root) => {
        for (const one of root.querySelectorAll("*")) {
            for (const { name, value } of one.attributes) {
                if (name.startsWith("on")) found.push(one.outerHTML);
                if (!["href", "src", "xlink:href"].includes(name)) continue;
                const leads = new URL(value, "http://here");
                if (leads.hostname === "evil.test" || leads.protocol === "javascript:" || value === "x")
                    found.push(one.outerHTML);
            }
            const formed = one.matches("b, em, code, del, mark, h1 *, h2, h3, li, blockquote, .katex");
            const bold = one.tagName === "tspan" && one.style.fontWeight === "bold";
            if ((formed || bold) && one.textContent.trim() === mark) found.push(one.outerHTML);
            if (one.shadowRoot) look(one.shadowRoot);
        }
    };
    look(document);
    return found;
}"""
# Not the zero-width space: formulas are set with it.
HIDDEN = "() => /[\\u202a-\\u202e\\u2066-\\u2069\\ufeff]/.test(document.body.innerText)"


@pytest.mark.walk
@pytest.mark.parametrize(("path", "view"), PAGES)
def test_a_terrible_sentence_is_only_a_sentence(
    open_page: Callable[..., Page], page: Page, path: str, view: str
) -> None:
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    opened = open_page(path, show=view, text=TERRIBLE, model=hostile_folder("llama"))
    expect(opened.get_by_role("textbox", name="Your sentence")).to_have_value(TERRIBLE)
    expect(opened.get_by_text(MARK).first).to_be_attached()
    assert opened.evaluate(INJECTED, MARK) == []
    assert opened.evaluate("() => window.hx") is None
    assert opened.evaluate("() => window.MathJax") is None  # else Plotly would read $…$ as LaTeX
    assert not opened.evaluate(HIDDEN)
    page.remove_listener("dialog", note)
    assert dialogs == []


def test_what_would_be_injected_is_seen(fresh_page: Callable[..., Page]) -> None:
    """The search above finds each kind, were it there."""
    page = fresh_page()
    for made in (
        f"<b>{MARK}</b>",
        "<img src=x>",
        "<p onclick='1'></p>",
        "<a href='http://evil.test/a'>a</a>",
        f"<svg><text><tspan style='font-weight: bold'>{MARK}</tspan></text></svg>",
    ):
        page.set_content(made)
        assert len(page.evaluate(INJECTED, MARK)) == 1, made
