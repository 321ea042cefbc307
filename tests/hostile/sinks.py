"""What a page sends to the browser, searched for token text that would be read as more than text.

Every string of every element is taken for Markdown unless it is listed here as plain: a new element
that shows tokens is suspected before it is trusted.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

from tests.hostile.attacks import FORMULAS, HIDDEN, MARK, MARKDOWN, MARKUP, TEMPLATES, hidden_in
from tests.pages.reading import tables

PLAIN = {  # shown as they are, or never shown
    "Code.code_text",
    "Text.body",
    "PlotlyChart.alt",  # said by screen readers
    "Selectbox.options",
    "Selectbox.raw_value",
    "Dataframe.columns",  # drawn on a canvas
    "MultiSelect.options",
    "TextArea.default",
    "TextArea.value",
    "TextArea.placeholder",
    "TextInput.default",
    "TextInput.value",
    "TextInput.placeholder",
    "PageLink.query_string",
    "Navigation.page_hash",
    "DownloadButton.url",
    "BidiComponent.json",  # its script makes text nodes only: tests/hostile/test_scripts.py
    "BidiComponent.html_content",
    "BidiComponent.css_content",
    "BidiComponent.js_content",
}
NAMES = re.compile(r"\.(id|form_id|key|element_key|user_key|.*_id|.*_hash|script_.*)$")
TAGS = re.compile(r"</?(b|i|br|sub|sup|extra)/?>")  # those that our own pictures use
READ_AS_TEMPLATES = ("hovertemplate", "texttemplate")


def escaped_wrongly(app: AppTest) -> list[str]:
    """A line for each string of a page in which an attack would be more than text."""
    found = []
    for place, text in sent(app):
        found += [f"{place}: {said!r}" for said in _wrong(place, text)]
    return found


def sent(app: AppTest) -> Iterator[tuple[str, str]]:
    """(message and field, string) of everything on the page."""
    for node in _nodes(app._tree):
        proto = getattr(node, "proto", None)
        if isinstance(proto, Message):
            yield from _strings(proto)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", {}).values():
        yield from _nodes(child)


def _strings(message: Message) -> Iterator[tuple[str, str]]:
    for field, value in message.ListFields():
        place = f"{message.DESCRIPTOR.name}.{field.name}"
        values = value if field.is_repeated else [value]
        if field.type == FieldDescriptor.TYPE_STRING and not _is_map(field):
            yield from ((place, text) for text in values)
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not _is_map(field):
            for inner in values:
                yield from _strings(inner)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _wrong(place: str, text: str) -> Iterator[str]:
    if place == "PlotlyChart.spec":
        yield from (
            f"{key} {part[:80]}" for key, part in _drawn(json.loads(text)) if _active(key, part)
        )
    elif place == "Html.body":
        yield from (attack for attack in MARKUP if attack in text)
        yield from (f"hidden {ord(letter):x}" for letter in hidden_in(text) if letter != "\n")
    elif place not in PLAIN and not NAMES.search(place):
        alone = re.sub(r"\\[#>-]", "", text)  # a sign that is escaped begins no line
        yield from (
            attack for attack in (*MARKUP, *MARKDOWN) if attack in alone and attack != "-->"
        )
        yield from (f"hidden {ord(letter):x} in {text[:60]}" for letter in hidden_in(text))


def _drawn(spec: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(name, string) of every string of a Plotly figure."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            if name not in ("bdata", "template"):
                yield from _drawn(value, name)
    elif isinstance(spec, list):
        for value in spec:
            yield from _drawn(value, key)
    elif isinstance(spec, str):
        yield key, spec


def _active(key: str, text: str) -> bool:
    """Whether Plotly would read token text in a string as tags, as a template or as a link."""
    if MARK in TAGS.sub("", text) and (
        "<" in TAGS.sub("", text) or re.search(rf"<\w+>{MARK}", text)
    ):
        return True
    if key in READ_AS_TEMPLATES and any(attack in text for attack in TEMPLATES[:3]):
        return True
    return bool(hidden_in(text)) or any(word in text for word in HIDDEN if not word.isprintable())


def unsafe_cells(app: AppTest) -> list[str]:
    """Cells of tables that hide something, or that a spreadsheet would take for formulas once the
    table is saved as CSV."""
    return [
        f"{cell[:40]!r}"
        for frame in tables(app)
        for cell in [*frame.columns, *frame.to_numpy().ravel().tolist()]
        if isinstance(cell, str) and (cell.startswith(FORMULAS) or hidden_in(cell))
    ]
