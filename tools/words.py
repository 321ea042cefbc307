"""All that the pages say, to be read aloud: `python -m tools.words [PAGE …]` prints it page by page.

Each view of a page is opened; what has been said already is not repeated. Of pictures, titles and labels are
read. After the pages come the worked examples and the sentences that JavaScript writes.
"""

import argparse
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from unittest.mock import patch

import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from model.worked import examples
from tests.pages.reading import control, shows, visit
from viz.shell.frame import HAND, IDEA, WAYS
from viz.state.navigation import PAGES, PageEntry

TEXTS = (
    "title",
    "header",
    "subheader",
    "markdown",
    "caption",
    "info",
    "success",
    "warning",
    "error",
    "latex",
)
BESIDE = ("help", "placeholder")  # what a widget says beside its label


VIZ = Path(__file__).resolve().parents[1] / "viz"
SENTENCE = re.compile(r"""["'`>]([^"'`<>=;{}\n]*[a-z]{2,} [a-z][^"'`<>=;\n]*)["'`<]""")


def page_texts(page: PageEntry) -> Iterator[str]:
    """Each sentence of a page once, in the order of reading, with a line for each tab and view."""
    seen = set[str]()
    for opened, app in _states(PurePath(page.file).stem):
        new = [text for text in dict.fromkeys(texts(app)) if text and text not in seen]
        seen.update(new)
        if new:
            yield f"\n### {opened}\n"
            yield from new


def _states(name: str) -> Iterator[tuple[str, AppTest]]:
    """The page as it opens, then each of its tabs and views."""
    app = visit(name)
    yield "as it opens", app
    for part in [tab.label for tab in app.tabs]:
        yield f"tab “{part}”", _opened_on(name, part)
    if any(one.label == WAYS for one in app.segmented_control):
        yield IDEA, _with_idea(name)
        yield HAND, _by_hand(name)
    for option in [option for views in shows(app) for option in views.options]:
        (views,) = shows(app)  # as drawn now: an older one belongs to the view before
        yield f"view “{option}”", views.set_value(option).run()


def _with_idea(name: str) -> AppTest:
    """The page with its idea opened: it is drawn only then."""
    closed = st.expander
    with patch.object(
        st, "expander", lambda label, *given, **more: closed(label, label == IDEA, **more)
    ):
        return visit(name)


def _by_hand(name: str) -> AppTest:
    """The page with tiny numbers."""
    return control(visit(name), WAYS).set_value(HAND).run()


def _opened_on(name: str, beat: str) -> AppTest:
    """The page as it opens with this tab in front: only the tab in front is drawn."""
    tabs = st.tabs
    with patch.object(st, "tabs", lambda names, **more: tabs(names, **more | {"default": beat})):
        return visit(name)


def texts(app: AppTest) -> Iterator[str]:
    """What every element of the main part and the sidebar says."""
    for block in (app.main, app.sidebar):
        for element in block:
            yield from _said(element)


def _said(element: Element) -> Iterator[str]:
    if element.type in TEXTS:
        yield " ".join(str(element.value).split())
    elif element.type == "html":
        bare = re.sub(r"<style>.*?</style>|<[^>]*>", " ", element.proto.body, flags=re.DOTALL)
        yield " ".join(html.unescape(bare).split())
    elif element.type == "plotly_chart":
        yield from _words_of_picture(json.loads(element.proto.spec))
    else:
        said = [getattr(element, "label", "")]
        said += [getattr(element.proto, name, "") for name in BESIDE]
        said += [str(option) for option in getattr(element, "options", ())]
        yield from said


def _words_of_picture(spec: object) -> Iterator[str]:
    """Titles, annotations and names of traces of a Plotly picture."""
    if isinstance(spec, dict):
        for key, part in spec.items():
            if key in ("text", "name") and isinstance(part, str) and re.search("[a-z]{3}", part):
                yield part
            else:
                yield from _words_of_picture(part)
    elif isinstance(spec, list):
        for part in spec[:50]:
            yield from _words_of_picture(part)


def worked_texts() -> Iterator[str]:
    """Titles, ideas, labels and remarks of all worked examples."""
    for example in examples():
        yield f"\n### {example.title}\n"
        yield example.idea
        yield from (item.label for item in example.inputs)
        for step in example.steps:
            yield f"{step.title}: {step.remark}" if step.remark else step.title


def browser_texts() -> Iterator[str]:
    """What stands in the files that the browser runs."""
    for path in sorted([*VIZ.rglob("*.js"), *VIZ.rglob("*.html")]):
        found = (
            [] if "bundled" in path.parts else SENTENCE.findall(path.read_text(encoding="utf-8"))
        )
        if found:
            yield f"\n### {path.relative_to(VIZ)}\n"
            yield from dict.fromkeys(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.words", description=__doc__)
    parser.add_argument("pages", nargs="*", help="names of pages; all if none is named")
    names = parser.parse_args().pages
    for page in PAGES:
        if not names or PurePath(page.file).stem in names:
            print(f"\n## {page.title}")
            print("\n".join(page_texts(page)))
    if not names:
        print("\n## Worked examples, all of them", *worked_texts(), sep="\n")
        print("\n## Written in the browser", *browser_texts(), sep="\n")


if __name__ == "__main__":
    main()
